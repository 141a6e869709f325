import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec;
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import scala.Function1;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Looks at plans as native engines do. While a plan is prepared they take exchanges over with the number of partitions
 * that they find: it notes those. Later an operator of theirs takes a shuffle over if its input is Spark's read of a stage:
 * it counts those, and reads that stand below something that is no operator of Spark's.
 */
public class NativeEngine extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  public static final AtomicInteger READS = new AtomicInteger();
  public static final AtomicInteger HIDDEN = new AtomicInteger();
  public static final Set<Integer> NUMBERS = ConcurrentHashMap.newKeySet();

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectColumnar(
        (Function1<org.apache.spark.sql.SparkSession, ColumnarRule>) session -> new Rules());
    extensions.injectQueryStagePrepRule(
        (Function1<org.apache.spark.sql.SparkSession, Rule<SparkPlan>>) session -> new Takeover());
    return BoxedUnit.UNIT;
  }

  private static final class Rules extends ColumnarRule {
    @Override
    public Rule<SparkPlan> preColumnarTransitions() {
      return new Look();
    }
  }

  private static final class Takeover extends Rule<SparkPlan> {
    @Override
    public SparkPlan apply(SparkPlan plan) {
      if (plan instanceof ShuffleExchangeExec) {
        NUMBERS.add(((ShuffleExchangeExec) plan).outputPartitioning().numPartitions());
      }
      plan.children().foreach(this::apply);
      return plan;
    }
  }

  private static final class Look extends Rule<SparkPlan> {
    @Override
    public SparkPlan apply(SparkPlan plan) {
      look(plan);
      return plan;
    }

    private void look(SparkPlan plan) {
      scala.collection.Iterator<SparkPlan> children = plan.children().iterator();
      while (children.hasNext()) {
        SparkPlan child = children.next();
        if (child instanceof AQEShuffleReadExec && ((AQEShuffleReadExec) child).child() instanceof ShuffleQueryStageExec) {
          boolean sparks = plan.getClass().getName().startsWith("org.apache.spark.sql.execution");
          (sparks ? READS : HIDDEN).incrementAndGet();
        }
        look(child);
      }
    }
  }
}

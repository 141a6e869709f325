import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.java.function.FlatMapGroupsWithStateFunction;
import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.api.java.function.MapGroupsWithStateFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.KeyValueGroupedDataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.GroupState;
import org.apache.spark.sql.streaming.GroupStateTimeout;
import org.apache.spark.sql.streaming.OutputMode;
import scala.Tuple2;
import scala.Tuple3;

/** Operators with a state for each group, which Spark has for Java and Scala only. */
public final class Grouped {
  private static final long NEVER_MS = 10_000L * 24 * 3_600_000;
  private static final Encoder<Tuple2<Long, Long>> COUNT_AND_SUM =
      Encoders.tuple(Encoders.LONG(), Encoders.LONG());

  private Grouped() {}

  /**
   * Returns name, count and sum of each name's rows so far, again when it expires (with its negative sum).
   *
   * <p>In processing time, a name expires in the micro-batch after its last row, or never.
   */
  public static Dataset<Row> flat(Dataset<Row> rows, String timeout) {
    GroupStateTimeout kind = of(timeout);
    FlatMapGroupsWithStateFunction<String, Row, Tuple2<Long, Long>, Tuple3<String, Long, Long>> add =
        (name, some, state) -> {
          List<Tuple3<String, Long, Long>> out = new ArrayList<>();
          Tuple2<Long, Long> known = state.exists() ? state.get() : new Tuple2<>(0L, 0L);
          if (state.hasTimedOut()) {
            state.remove();
            out.add(new Tuple3<>(name, known._1(), -known._2()));
            return out.iterator();
          }
          long count = known._1();
          long sum = known._2();
          while (some.hasNext()) {
            count += 1;
            sum += some.next().<Long>getAs("value");
          }
          state.update(new Tuple2<>(count, sum));
          expire(state, timeout, count);
          out.add(new Tuple3<>(name, count, sum));
          return out.iterator();
        };
    return names(rows)
        .flatMapGroupsWithState(
            add,
            OutputMode.Update(),
            COUNT_AND_SUM,
            Encoders.tuple(Encoders.STRING(), Encoders.LONG(), Encoders.LONG()),
            kind)
        .toDF("name", "n", "total");
  }

  /** Returns key and sum of each key's rows so far, which is negative when the key expires. */
  public static Dataset<Row> map(Dataset<Row> rows, String timeout) {
    MapGroupsWithStateFunction<Integer, Row, Long, Tuple2<Integer, Long>> add =
        (key, some, state) -> {
          long sum = state.exists() ? state.get() : 0;
          if (state.hasTimedOut()) {
            state.remove();
            return new Tuple2<>(key, -sum);
          }
          while (some.hasNext()) {
            sum += some.next().<Long>getAs("value");
          }
          state.update(sum);
          expire(state, timeout, sum);
          return new Tuple2<>(key, sum);
        };
    MapFunction<Row, Integer> key = row -> row.getAs("key");
    return rows.groupByKey(key, Encoders.INT())
        .mapGroupsWithState(
            add, Encoders.LONG(), Encoders.tuple(Encoders.INT(), Encoders.LONG()), of(timeout))
        .toDF("key", "total");
  }

  private static KeyValueGroupedDataset<String, Row> names(Dataset<Row> rows) {
    MapFunction<Row, String> name = row -> row.getAs("name");
    return rows.groupByKey(name, Encoders.STRING());
  }

  private static GroupStateTimeout of(String timeout) {
    switch (timeout) {
      case "event time":
        return GroupStateTimeout.EventTimeTimeout();
      case "processing time":
        return GroupStateTimeout.ProcessingTimeTimeout();
      default:
        return GroupStateTimeout.NoTimeout();
    }
  }

  private static void expire(GroupState<?> state, String timeout, long parity) {
    boolean soon = parity % 2 == 0;
    if (timeout.equals("event time")) {
      state.setTimeoutTimestamp(state.getCurrentWatermarkMs() + (soon ? 20_000 : 90_000));
    } else if (timeout.equals("processing time")) {
      state.setTimeoutDuration(soon ? 1 : NEVER_MS);
    }
  }
}

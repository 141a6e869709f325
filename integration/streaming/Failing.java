import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.util.Collection;
import java.util.concurrent.CountDownLatch;
import org.apache.spark.ExecutorAllocationClient;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SchedulerBackend;
import org.apache.spark.scheduler.TaskScheduler;
import scala.Function0;
import scala.Function1;
import scala.runtime.BoxedUnit;

/** Parts of Spark of which one method fails as it does where no memory is left. */
public class Failing {
  private static final CountDownLatch broken = new CountDownLatch(1);

  public static TaskScheduler scheduler(TaskScheduler real) {
    return (TaskScheduler) failing(real, "getExecutorDecommissionState", TaskScheduler.class);
  }

  /** One that can request executors, which the real one need not be able to. */
  public static SchedulerBackend backend(SchedulerBackend real) {
    return (SchedulerBackend)
        failing(real, "requestTotalExecutors", SchedulerBackend.class, ExecutorAllocationClient.class);
  }

  /** Lets a context have another backend; its scheduler keeps its own. */
  public static void use(SparkContext context, SchedulerBackend backend) throws ReflectiveOperationException {
    Field field = SparkContext.class.getDeclaredField("_schedulerBackend");
    field.setAccessible(true);
    field.set(context, backend);
  }

  private static Object failing(Object real, String name, Class<?>... kinds) {
    return Proxy.newProxyInstance(
        Failing.class.getClassLoader(),
        kinds,
        (proxy, method, arguments) -> {
          if (method.getName().equals(name)) {
            throw noMemory();
          }
          return method.invoke(real, arguments);
        });
  }

  /** Waits until `breakDown` is called, and fails then. */
  public static Function0<BoxedUnit> untilItBreaks() {
    return () -> {
      try {
        broken.await();
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
      throw noMemory();
    };
  }

  public static void breakDown() {
    broken.countDown();
  }

  /** Adds what it is told to a list. */
  public static Function1<String, BoxedUnit> adding(Collection<String> to) {
    return told -> {
      to.add(told);
      return BoxedUnit.UNIT;
    };
  }

  private static Error noMemory() {
    return new OutOfMemoryError("as if none were left");
  }
}

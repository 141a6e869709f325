import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkFirehoseListener;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.scheduler.SparkListenerEvent;

/**
 * Listeners that an application brings along, one in each of the queues that the system property `queues` names. While
 * the file that the property `slow` names exists, it has the name of a queue and a number: each event takes the listener
 * there so many milliseconds.
 */
public class SlowListeners implements SparkPlugin {
  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPlugin() {
      @Override
      public Map<String, String> init(SparkContext context, PluginContext plugin) {
        for (String queue : System.getProperty("queues").split(",")) {
          context.listenerBus().addToQueue(new SlowListener(queue), queue);
        }
        return Map.of();
      }
    };
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return null;
  }

  private static class SlowListener extends SparkFirehoseListener {
    private final Path slow = Paths.get(System.getProperty("slow"));
    private final String queue;

    SlowListener(String queue) {
      this.queue = queue;
    }

    @Override
    public void onEvent(SparkListenerEvent event) {
      try {
        String[] words = Files.readString(slow).split(" ");
        if (words[0].equals(queue)) {
          Thread.sleep(Long.parseLong(words[1]));
        }
      } catch (NoSuchFileException fast) {
        // It takes no time.
      } catch (IOException broken) {
        throw new IllegalStateException(broken);
      } catch (InterruptedException ending) {
        Thread.currentThread().interrupt();
      }
    }
  }
}

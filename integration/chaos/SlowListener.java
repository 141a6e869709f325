import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import org.apache.spark.SparkFirehoseListener;
import org.apache.spark.scheduler.SparkListenerEvent;

/**
 * A listener that an application brings along. While the file that the system property `slow` names exists, each event
 * takes it as many milliseconds as stand there.
 */
public class SlowListener extends SparkFirehoseListener {
  private final Path slow = Paths.get(System.getProperty("slow"));

  @Override
  public void onEvent(SparkListenerEvent event) {
    try {
      Thread.sleep(Long.parseLong(Files.readString(slow)));
    } catch (NoSuchFileException fast) {
      // It takes no time.
    } catch (NumberFormatException halfWritten) {
      // It is about to be slow.
    } catch (IOException broken) {
      throw new IllegalStateException(broken);
    } catch (InterruptedException ending) {
      Thread.currentThread().interrupt();
    }
  }
}

import java.io.IOException;
import java.net.URI;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;

/**
 * Files of this machine under scarce:///. Of the threads that copy a savepoint each second one fails as it does where no
 * memory is left. The others take some time, and are not to be interrupted.
 */
public class ScarceStorage extends RawLocalFileSystem {
  private static final long SLOW_NS = 1_000_000_000L;
  private static final AtomicInteger opened = new AtomicInteger();

  private static void takeTime() {
    long end = System.nanoTime() + SLOW_NS;
    while (System.nanoTime() < end) {
      LockSupport.parkNanos(end - System.nanoTime());
      Thread.interrupted();
    }
  }

  @Override
  public URI getUri() {
    return URI.create("scarce:///");
  }

  @Override
  public String getScheme() {
    return "scarce";
  }

  @Override
  public FSDataInputStream open(Path f, int bufferSize) throws IOException {
    if (Thread.currentThread().getName().startsWith("elastic-savepoint")) {
      if (opened.getAndIncrement() % 2 == 0) {
        throw new OutOfMemoryError("as if none were left");
      }
      takeTime();
    }
    return super.open(f, bufferSize);
  }
}

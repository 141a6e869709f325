import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;

/** Files of this machine under scarce:///. The threads that copy a savepoint fail as they do where no memory is left. */
public class ScarceStorage extends RawLocalFileSystem {
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
      throw new OutOfMemoryError("as if none were left");
    }
    return super.open(f, bufferSize);
  }
}

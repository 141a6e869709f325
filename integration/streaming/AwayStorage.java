import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * Files of this machine under away:///, through Hadoop's plain interface as an object store has it. As long as the file
 * that the system property `away` names exists, nothing of it can be reached; a failed attempt leaves a file beside that
 * one. If it has the name of a folder in it, the first attempt to reach anything below such a folder fails, and no other.
 */
public class AwayStorage extends RawLocalFileSystem {
  @Override
  public URI getUri() {
    return URI.create("away:///");
  }

  @Override
  public String getScheme() {
    return "away";
  }

  private void reach(org.apache.hadoop.fs.Path f) throws IOException {
    Path away = Paths.get(System.getProperty("away"));
    String folder = Files.exists(away) ? Files.readString(away) : null;
    if (folder != null && f.toString().contains(folder)) {
      Files.writeString(Paths.get(away + ".tried"), "");
      if (!folder.isEmpty()) {
        Files.delete(away);
      }
      throw new IOException("the storage is away");
    }
  }

  @Override
  public FSDataInputStream open(org.apache.hadoop.fs.Path f, int bufferSize) throws IOException {
    reach(f);
    return super.open(f, bufferSize);
  }

  @Override
  public FSDataOutputStream create(
      org.apache.hadoop.fs.Path f,
      FsPermission permission,
      boolean overwrite,
      int bufferSize,
      short replication,
      long blockSize,
      Progressable progress)
      throws IOException {
    reach(f);
    return super.create(f, permission, overwrite, bufferSize, replication, blockSize, progress);
  }

  @Override
  public FSDataOutputStream create(
      org.apache.hadoop.fs.Path f,
      boolean overwrite,
      int bufferSize,
      short replication,
      long blockSize,
      Progressable progress)
      throws IOException {
    reach(f);
    return super.create(f, overwrite, bufferSize, replication, blockSize, progress);
  }

  @Override
  public boolean rename(org.apache.hadoop.fs.Path src, org.apache.hadoop.fs.Path dst) throws IOException {
    reach(src);
    return super.rename(src, dst);
  }

  @Override
  public FileStatus[] listStatus(org.apache.hadoop.fs.Path f) throws IOException {
    reach(f);
    return super.listStatus(f);
  }

  @Override
  public FileStatus getFileStatus(org.apache.hadoop.fs.Path f) throws IOException {
    reach(f);
    return super.getFileStatus(f);
  }

  @Override
  public boolean mkdirs(org.apache.hadoop.fs.Path f) throws IOException {
    reach(f);
    return super.mkdirs(f);
  }
}

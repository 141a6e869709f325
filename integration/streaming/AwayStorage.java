import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.concurrent.ThreadLocalRandom;
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
 * If the system property `away.threads` is true, it is as if a client of a store could have no thread. If `away.refuses`
 * is, no file takes the place of another one by a rename, as in HDFS.
 *
 * <p>If a file beside that one whose name ends in `.within` exists, nothing can be reached whose path contains its text.
 *
 * <p>A file beside that one whose name ends in `.odd` makes it slow or unreliable. Each of its lines is `OPERATION PERCENT
 * MS`: that operation (or `all`) takes so many milliseconds longer, and fails in so many of 100 cases.
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

  private static String read(Path file) throws IOException {
    try {
      return Files.readString(file);
    } catch (NoSuchFileException nothing) {
      return null;
    }
  }

  private static void reach(org.apache.hadoop.fs.Path f, String operation) throws IOException {
    Path away = Paths.get(System.getProperty("away"));
    String folder = read(away);
    if (folder != null && f.toString().contains(folder)) {
      Files.writeString(Paths.get(away + ".tried"), "");
      if (!folder.isEmpty()) {
        Files.delete(away);
      }
      if (Boolean.getBoolean("away.threads")) {
        throw new OutOfMemoryError("unable to create native thread");
      }
      throw new StoreIOException("the storage is away");
    }
    String within = read(Paths.get(away + ".within"));
    if (within != null && f.toString().contains(within)) {
      Files.writeString(Paths.get(away + ".tried"), "");
      throw new StoreIOException("the storage is away");
    }
    String odd = read(Paths.get(away + ".odd"));
    for (String line : odd == null ? new String[0] : odd.split("\n")) {
      String[] words = line.split(" ");
      if (words[0].equals("all") || words[0].equals(operation)) {
        be(Integer.parseInt(words[1]), Long.parseLong(words[2]), operation);
      }
    }
  }

  private static void be(int percent, long ms, String operation) throws IOException {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted while the storage was slow");
    }
    if (ThreadLocalRandom.current().nextInt(100) < percent) {
      throw new StoreIOException("the storage fails to " + operation);
    }
  }

  /** As clients of object stores have them: what has caused it is none. */
  private static final class StoreIOException extends IOException {
    StoreIOException(String why) {
      super(why, new IllegalStateException(why));
    }
  }

  /** What is written, for as long as there is room. */
  private static final class Room extends FilterOutputStream {
    private final org.apache.hadoop.fs.Path file;

    Room(OutputStream out, org.apache.hadoop.fs.Path file) {
      super(out);
      this.file = file;
    }

    @Override
    public void write(int b) throws IOException {
      reach(file, "write");
      out.write(b);
    }

    @Override
    public void write(byte[] b, int off, int len) throws IOException {
      reach(file, "write");
      out.write(b, off, len);
    }
  }

  @Override
  public FSDataInputStream open(org.apache.hadoop.fs.Path f, int bufferSize) throws IOException {
    reach(f, "open");
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
    reach(f, "create");
    return roomy(super.create(f, permission, overwrite, bufferSize, replication, blockSize, progress), f);
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
    reach(f, "create");
    return roomy(super.create(f, overwrite, bufferSize, replication, blockSize, progress), f);
  }

  private static FSDataOutputStream roomy(FSDataOutputStream made, org.apache.hadoop.fs.Path f) throws IOException {
    return new FSDataOutputStream(new Room(made, f), null);
  }

  @Override
  public boolean delete(org.apache.hadoop.fs.Path f, boolean recursive) throws IOException {
    reach(f, "delete");
    return super.delete(f, recursive);
  }

  @Override
  public boolean rename(org.apache.hadoop.fs.Path src, org.apache.hadoop.fs.Path dst) throws IOException {
    reach(src, "rename");
    if (Boolean.getBoolean("away.refuses") && exists(dst)) {
      return false;
    }
    return !(Boolean.getBoolean("away.keeps") && src.getName().endsWith(".part")) && super.rename(src, dst);
  }

  @Override
  public FileStatus[] listStatus(org.apache.hadoop.fs.Path f) throws IOException {
    reach(f, "list");
    return super.listStatus(f);
  }

  @Override
  public FileStatus getFileStatus(org.apache.hadoop.fs.Path f) throws IOException {
    reach(f, "status");
    return super.getFileStatus(f);
  }

  @Override
  public boolean mkdirs(org.apache.hadoop.fs.Path f) throws IOException {
    reach(f, "mkdirs");
    return super.mkdirs(f);
  }
}

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.UUID;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.TaskInfo;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.source.legacy.RichParallelSourceFunction;

/**
 * The query `stateful_large` of stream_app.py as a job: it counts rows by key, and keeps about 1 KB of text for each
 * key, which does not compress. The first rows bring all keys as fast as they can be kept, 25 in each; every later row
 * brings one of them.
 *
 * <p>A later row is due at a time, and comes then; rows whose time passed while the job stood still come at once.
 *
 * <p>usage: KeyedState KEYS ROWS_PER_SECOND KEYS_PER_ROW_AT_FIRST FOLDER
 *
 * <p>Each subtask of the sink has a file of its own in FOLDER. It appends a line when a row comes, but at most one in
 * 10 ms: the time (epoch ms), the number of the subtask, the number of subtasks, and the latest time at which a row that
 * has come was due (epoch us).
 */
public final class KeyedState {
  public static void main(String[] args) throws Exception {
    StreamExecutionEnvironment job = StreamExecutionEnvironment.getExecutionEnvironment();
    Rows rows = new Rows(Long.parseLong(args[0]), Integer.parseInt(args[1]), Integer.parseInt(args[2]));
    job.getConfig().enableObjectReuse();
    job.addSource(rows, "rows", Types.TUPLE(Types.LONG, Types.STRING, Types.LONG))
        .keyBy(row -> row.f0, Types.LONG)
        .map(new Latest())
        .returns(Types.LONG)
        .sinkTo(new Outputs(args[3]));
    job.execute("keyed_state");
  }

  // ---- The source

  /** Rows of key, text and the time at which they are due (epoch us). */
  private static final class Rows extends RichParallelSourceFunction<Tuple3<Long, String, Long>>
      implements CheckpointedFunction {
    /** Parts of the source, which its subtasks share out; together they are as fast at any parallelism. */
    private static final int PARTS = 10;

    private final long keys;
    private final long intervalUs;
    private final int atFirst;
    private volatile boolean running = true;
    private transient List<Part> parts;
    private transient ListState<Tuple3<Integer, Long, Long>> kept;
    private transient Text text;

    Rows(long keys, int perSecond, int atFirst) {
      this.keys = keys;
      this.intervalUs = PARTS * 1_000_000L / perSecond;
      this.atFirst = atFirst;
    }

    @Override
    public void initializeState(FunctionInitializationContext context) throws Exception {
      kept =
          context
              .getOperatorStateStore()
              .getListState(new ListStateDescriptor<>("parts", Types.TUPLE(Types.INT, Types.LONG, Types.LONG)));
      parts = new ArrayList<>();
      if (context.isRestored()) {
        for (Tuple3<Integer, Long, Long> part : kept.get()) {
          parts.add(new Part(part.f0, part.f1, part.f2));
        }
      } else {
        TaskInfo task = getRuntimeContext().getTaskInfo();
        for (int number = task.getIndexOfThisSubtask(); number < PARTS; number += task.getNumberOfParallelSubtasks()) {
          parts.add(new Part(number, 0, 0));
        }
      }
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) throws Exception {
      kept.clear();
      for (Part part : parts) {
        kept.add(Tuple3.of(part.number, part.rows, part.dueUs));
      }
    }

    @Override
    public void run(SourceContext<Tuple3<Long, String, Long>> out) throws Exception {
      text = new Text();
      Comparator<Part> byTime = Comparator.comparingLong(part -> part.dueUs);
      while (running) {
        Part next = parts.stream().min(byTime).orElse(null);
        long nowUs = System.currentTimeMillis() * 1000;
        if (next == null || next.dueUs > nowUs) {
          Thread.sleep(1);
        } else {
          synchronized (out.getCheckpointLock()) {
            emit(next, nowUs, out);
          }
        }
      }
    }

    private void emit(Part part, long nowUs, SourceContext<Tuple3<Long, String, Long>> out) {
      long value = part.rows * PARTS + part.number;
      long first = value * atFirst;
      part.rows++;
      if (first < keys) {
        // The clock of the later rows starts with the last of these.
        part.dueUs = nowUs;
        for (long key = first; key < first + atFirst; key++) {
          out.collect(Tuple3.of(key, text.of(key), nowUs));
        }
      } else {
        long key = Long.remainderUnsigned(mixed(value), keys);
        out.collect(Tuple3.of(key, text.of(key), part.dueUs));
        part.dueUs += intervalUs;
      }
    }

    /** Mixes the bits of a number (SplitMix64), so that successive rows bring distant keys. */
    private static long mixed(long value) {
      long mixed = value + 0x9E3779B97F4A7C15L;
      mixed = (mixed ^ (mixed >>> 30)) * 0xBF58476D1CE4E5B9L;
      mixed = (mixed ^ (mixed >>> 27)) * 0x94D049BB133111EBL;
      return mixed ^ (mixed >>> 31);
    }

    @Override
    public void cancel() {
      running = false;
    }

    private static final class Part {
      private final int number;
      private long rows;
      private long dueUs;

      Part(int number, long rows, long dueUs) {
        this.number = number;
        this.rows = rows;
        this.dueUs = dueUs;
      }
    }
  }

  private static final class Text {
    private static final int PIECES = 8;
    private final MessageDigest digest;

    Text() throws NoSuchAlgorithmException {
      digest = MessageDigest.getInstance("SHA-512");
    }

    String of(long key) {
      StringBuilder text = new StringBuilder();
      for (int piece = 0; piece < PIECES; piece++) {
        byte[] bytes = digest.digest((key + "/" + piece).getBytes(StandardCharsets.UTF_8));
        text.append(HexFormat.of().formatHex(bytes));
      }
      return text.toString();
    }
  }

  // ---- The keyed state

  private static final class Latest extends RichMapFunction<Tuple3<Long, String, Long>, Long> {
    private transient ValueState<Tuple2<Long, String>> state;

    @Override
    public void open(OpenContext context) {
      ValueStateDescriptor<Tuple2<Long, String>> latest =
          new ValueStateDescriptor<>("latest", Types.TUPLE(Types.LONG, Types.STRING));
      state = getRuntimeContext().getState(latest);
    }

    @Override
    public Long map(Tuple3<Long, String, Long> row) throws Exception {
      Tuple2<Long, String> before = state.value();
      if (before == null) {
        state.update(Tuple2.of(1L, row.f1));
      } else {
        String text = before.f1.compareTo(row.f1) < 0 ? row.f1 : before.f1;
        state.update(Tuple2.of(before.f0 + 1, text));
      }
      return row.f2;
    }
  }

  // ---- The sink

  private static final class Outputs implements Sink<Long> {
    private final String folder;

    Outputs(String folder) {
      this.folder = folder;
    }

    @Override
    public SinkWriter<Long> createWriter(WriterInitContext context) throws IOException {
      TaskInfo task = context.getTaskInfo();
      String subtask = task.getIndexOfThisSubtask() + " " + task.getNumberOfParallelSubtasks();
      return new Lines(Path.of(folder, UUID.randomUUID() + ".outputs"), subtask);
    }
  }

  private static final class Lines implements SinkWriter<Long> {
    private static final long APART_MS = 10;

    private final OutputStream file;
    private final String subtask;
    private long newestUs;
    private long writtenMs;

    Lines(Path path, String subtask) throws IOException {
      file = Files.newOutputStream(path);
      this.subtask = subtask;
    }

    @Override
    public void write(Long dueUs, Context context) throws IOException {
      newestUs = Math.max(newestUs, dueUs);
      long now = System.currentTimeMillis();
      if (now - writtenMs >= APART_MS) {
        // Not buffered: a process that is killed leaves all of its lines.
        file.write((now + " " + subtask + " " + newestUs + "\n").getBytes(StandardCharsets.US_ASCII));
        writtenMs = now;
      }
    }

    @Override
    public void flush(boolean endOfInput) {}

    @Override
    public void close() throws IOException {
      file.close();
    }
  }
}

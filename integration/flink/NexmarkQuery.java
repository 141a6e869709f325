import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.UUID;
import java.util.stream.Collectors;
import net.jpountz.xxhash.XXHash64;
import net.jpountz.xxhash.XXHashFactory;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.assigners.FileSplitAssigner;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;
import org.apache.flink.table.annotation.DataTypeHint;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.functions.ScalarFunction;

/**
 * Runs a query in SQL over numbers of events, which arrive as lines of files named FIRST.txt.
 *
 * <p>usage: NexmarkQuery LINES OUTPUT READ WAIT_US BEGIN_MS DELAY_MS VIEW... QUERY
 *
 * <p>Event n happens n ms after BEGIN_MS (epoch ms), and the watermark is DELAY_MS behind the events. The views and the
 * query read the table `numbers` with the columns `n` and `dateTime`. The columns of a row are joined with tabs, and
 * each checkpoint completes the files in OUTPUT. Reading a number takes WAIT_US us (0 to 1,000) longer on average.
 *
 * <p>Each subtask of the source has a file of its own in READ, and another one after each restart. It appends a line at
 * each checkpoint: the checkpoint's number, and the first number and the end of each range that has been read since the
 * line before.
 */
public final class NexmarkQuery {
  private static final Duration LIST_EVERY = Duration.ofMillis(200);

  public static void main(String[] args) throws Exception {
    StreamExecutionEnvironment job = StreamExecutionEnvironment.getExecutionEnvironment();
    StreamTableEnvironment tables = StreamTableEnvironment.create(job);
    tables.getConfig().setLocalTimeZone(ZoneOffset.UTC);
    tables.createTemporarySystemFunction("xxhash64", Hash.class);
    tables.createTemporarySystemFunction("pmod", PositiveRemainder.class);
    tables.createTemporarySystemFunction("timestamp_millis", TimeOf.class);
    long begin = Long.parseLong(args[4]);
    // Each file is a split, and has its own watermark; the source's is that of the slowest.
    WatermarkStrategy<String> watermarks =
        WatermarkStrategy.<String>forBoundedOutOfOrderness(Duration.ofMillis(Long.parseLong(args[5])))
            .withTimestampAssigner((line, before) -> begin + Long.parseLong(line));
    DataStream<Long> numbers =
        job.fromSource(source(args[0]), watermarks, "numbers").map(new Read(args[2], Integer.parseInt(args[3])));
    Schema schema =
        Schema.newBuilder()
            .column("f0", DataTypes.BIGINT())
            .columnByExpression("n", "f0")
            .columnByMetadata("dateTime", DataTypes.TIMESTAMP_LTZ(3), "rowtime")
            .watermark("dateTime", "SOURCE_WATERMARK()")
            .build();
    tables.createTemporaryView("numbers", numbers, schema);
    for (int view = 6; view < args.length - 1; view++) {
      tables.executeSql(args[view]);
    }
    lines(tables, tables.sqlQuery(args[args.length - 1])).sinkTo(sink(args[1]));
    job.execute("nexmark");
  }

  private static FileSource<String> source(String folder) {
    return FileSource.forRecordStreamFormat(new TextLineInputFormat(), new Path(folder))
        .monitorContinuously(LIST_EVERY)
        .setSplitAssigner(InOrder::new)
        .build();
  }

  private static DataStream<String> lines(StreamTableEnvironment tables, Table rows) {
    String columns =
        rows.getResolvedSchema().getColumnNames().stream()
            .map(name -> "CAST(`" + name + "` AS STRING)")
            .collect(Collectors.joining(", "));
    tables.createTemporaryView("found", rows);
    Table joined = tables.sqlQuery("SELECT CONCAT_WS('\t', " + columns + ") FROM found");
    return tables.toDataStream(joined, DataTypes.STRING());
  }

  private static FileSink<String> sink(String folder) {
    return FileSink.forRowFormat(new Path(folder), new SimpleStringEncoder<String>())
        .withBucketAssigner(new BasePathBucketAssigner<>())
        .withRollingPolicy(OnCheckpointRollingPolicy.build())
        .build();
  }

  // ---- The source

  /** Hands out the files in the order in which they were written; Flink's own assigners do so in any. */
  private static final class InOrder implements FileSplitAssigner {
    private final PriorityQueue<FileSourceSplit> left = new PriorityQueue<>(Comparator.comparingLong(InOrder::first));

    InOrder(Collection<FileSourceSplit> splits) {
      left.addAll(splits);
    }

    private static long first(FileSourceSplit split) {
      return Long.parseLong(split.path().getName().replace(".txt", ""));
    }

    @Override
    public Optional<FileSourceSplit> getNext(String host) {
      return Optional.ofNullable(left.poll());
    }

    @Override
    public void addSplits(Collection<FileSourceSplit> splits) {
      left.addAll(splits);
    }

    @Override
    public Collection<FileSourceSplit> remainingSplits() {
      return new ArrayList<>(left);
    }
  }

  /** Reads numbers from lines, waits with some of them for 1 ms, and notes what each checkpoint has. */
  private static final class Read extends RichMapFunction<String, Long> implements CheckpointedFunction {
    private final String folder;
    private final int waitUs;
    private transient java.nio.file.Path file;
    private transient List<long[]> ranges;

    Read(String folder, int waitUs) {
      this.folder = folder;
      this.waitUs = waitUs;
    }

    @Override
    public void initializeState(FunctionInitializationContext context) {
      file = java.nio.file.Path.of(folder, UUID.randomUUID().toString());
      ranges = new ArrayList<>();
    }

    @Override
    public Long map(String line) throws InterruptedException {
      long number = Long.parseLong(line);
      if (number * waitUs % 1000 < waitUs) {
        Thread.sleep(1);
      }
      if (ranges.isEmpty() || ranges.get(ranges.size() - 1)[1] != number) {
        ranges.add(new long[] {number, number});
      }
      ranges.get(ranges.size() - 1)[1] = number + 1;
      return number;
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) throws IOException {
      StringBuilder line = new StringBuilder().append(context.getCheckpointId());
      for (long[] range : ranges) {
        line.append(' ').append(range[0]).append(' ').append(range[1]);
      }
      byte[] bytes = line.append('\n').toString().getBytes(StandardCharsets.UTF_8);
      Files.write(file, bytes, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
      ranges.clear();
    }
  }

  // ---- Functions of Spark's SQL that Flink's does not have

  /** Spark's `xxhash64` of a bigint and an int. */
  public static final class Hash extends ScalarFunction {
    private static final XXHash64 HASH = XXHashFactory.fastestJavaInstance().hash64();
    private static final long SEED = 42;

    public Long eval(Long number, Integer place) {
      ByteBuffer bytes = ByteBuffer.allocate(Long.BYTES + Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN);
      bytes.putLong(number).putInt(place);
      // As in Spark, the hash of one value is the seed of the next.
      return HASH.hash(bytes, Long.BYTES, Integer.BYTES, HASH.hash(bytes, 0, Long.BYTES, SEED));
    }
  }

  public static final class PositiveRemainder extends ScalarFunction {
    public Long eval(Long value, Long below) {
      return Math.floorMod(value, below);
    }
  }

  public static final class TimeOf extends ScalarFunction {
    @DataTypeHint("TIMESTAMP_LTZ(3)")
    public Instant eval(Long epochMs) {
      return Instant.ofEpochMilli(epochMs);
    }
  }
}

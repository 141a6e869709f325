import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.ExpiredTimerInfo;
import org.apache.spark.sql.streaming.ListState;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.StatefulProcessorHandle;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/** transformWithState, which Spark has from 4.0 on. */
public final class Processors {
  private static final Encoder<Tuple3<Integer, String, String>> OUTPUT =
      Encoders.tuple(Encoders.INT(), Encoders.STRING(), Encoders.STRING());
  private static final TTLConfig SOON = new TTLConfig(Duration.ofMillis(1));
  private static final TTLConfig NEVER = new TTLConfig(Duration.ofDays(10_000));

  private Processors() {}

  /** Returns what each key has in a value, a list and a map: with its rows, and when its timers end. */
  public static Dataset<Row> timers(Dataset<Row> rows) {
    return by(rows, new Memory(true, TTLConfig.NONE(), TTLConfig.NONE()), TimeMode.EventTime());
  }

  /** Returns the same without timers or other times. */
  public static Dataset<Row> plain(Dataset<Row> rows) {
    return by(rows, new Memory(false, TTLConfig.NONE(), TTLConfig.NONE()), TimeMode.None());
  }

  /**
   * Returns the same where values and lists expire in the next micro-batch, maps never.
   *
   * <p>Of two timers in processing time, one ends in the next micro-batch and one never.
   */
  public static Dataset<Row> expiring(Dataset<Row> rows) {
    return by(rows, new Memory(true, SOON, NEVER), TimeMode.ProcessingTime());
  }

  /** Returns the same where values and lists never expire, and maps in the next micro-batch. */
  public static Dataset<Row> lasting(Dataset<Row> rows) {
    return by(rows, new Memory(false, NEVER, SOON), TimeMode.ProcessingTime());
  }

  private static Dataset<Row> by(
      Dataset<Row> rows,
      StatefulProcessor<Integer, Row, Tuple3<Integer, String, String>> processor,
      TimeMode mode) {
    MapFunction<Row, Integer> key = row -> row.getAs("key");
    return rows.groupByKey(key, Encoders.INT())
        .transformWithState(processor, mode, OutputMode.Update(), OUTPUT)
        .toDF("key", "why", "known");
  }

  /** Keeps a sum, all values, and how often each last digit has come. */
  public static final class Memory
      extends StatefulProcessor<Integer, Row, Tuple3<Integer, String, String>> {
    private final boolean timers;
    private final TTLConfig values;
    private final TTLConfig maps;
    private transient boolean eventTime;
    private transient ValueState<Long> sum;
    private transient ListState<Long> all;
    private transient MapState<String, Long> digits;

    Memory(boolean timers, TTLConfig values, TTLConfig maps) {
      this.timers = timers;
      this.values = values;
      this.maps = maps;
    }

    @Override
    public void init(OutputMode output, TimeMode mode) {
      StatefulProcessorHandle handle = getHandle();
      eventTime = mode.equals(TimeMode.EventTime());
      sum = handle.getValueState("sum", Encoders.LONG(), values);
      all = handle.getListState("all", Encoders.LONG(), values);
      digits = handle.getMapState("digits", Encoders.STRING(), Encoders.LONG(), maps);
    }

    @Override
    public Iterator<Tuple3<Integer, String, String>> handleInputRows(
        Integer key, Iterator<Row> rows, TimerValues times) {
      long total = sum.exists() ? sum.get() : 0;
      while (rows.hasNext()) {
        long value = rows.next().<Long>getAs("value");
        total += value;
        all.appendValue(value);
        String digit = "digit " + value % 10;
        digits.updateValue(digit, (digits.containsKey(digit) ? digits.getValue(digit) : 0) + 1);
      }
      sum.update(total);
      if (timers) {
        long now = eventTime ? times.getCurrentWatermarkInMs() : times.getCurrentProcessingTimeInMs();
        getHandle().registerTimer(now + (eventTime ? 30_000 : 1));
        // The second one is far away, but in event time not so far for keys that have been seen early.
        getHandle().registerTimer(now + (eventTime && key % 2 == 0 ? 75_000 : 864_000_000_000L));
      }
      return known(key, "rows");
    }

    @Override
    public Iterator<Tuple3<Integer, String, String>> handleExpiredTimer(
        Integer key, TimerValues times, ExpiredTimerInfo expired) {
      String why = eventTime ? "timer of " + expired.getExpiryTimeInMs() : "timer";
      Iterator<Tuple3<Integer, String, String>> out = known(key, why);
      if (key % 5 == 0) {
        digits.clear();
        all.clear();
      }
      return out;
    }

    private Iterator<Tuple3<Integer, String, String>> known(int key, String why) {
      TreeSet<String> counts = new TreeSet<>();
      Iterator<Tuple2<String, Long>> pairs = digits.iterator();
      while (pairs.hasNext()) {
        Tuple2<String, Long> pair = pairs.next();
        counts.add(pair._1() + ": " + pair._2());
      }
      List<Long> every = new ArrayList<>();
      Iterator<Long> values = all.get();
      while (values.hasNext()) {
        every.add(values.next());
      }
      String text = (sum.exists() ? sum.get() : null) + " " + every + " " + counts;
      return CollectionConverters.asScala(List.of(new Tuple3<>(key, why, text)).iterator());
    }
  }
}

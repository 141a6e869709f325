import java.net.URL;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletionException;
import org.apache.flink.api.common.JobID;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.jobgraph.JobResourceRequirements;
import org.apache.flink.runtime.jobgraph.JobVertexID;
import org.apache.flink.runtime.jobgraph.JobVertexResourceRequirements;
import org.apache.flink.runtime.rest.RestClient;
import org.apache.flink.runtime.rest.messages.EmptyRequestBody;
import org.apache.flink.runtime.rest.messages.JobMessageParameters;
import org.apache.flink.runtime.rest.messages.job.JobResourceRequirementsBody;
import org.apache.flink.runtime.rest.messages.job.JobResourceRequirementsHeaders;
import org.apache.flink.runtime.rest.messages.job.JobResourcesRequirementsUpdateHeaders;
import org.apache.flink.runtime.rest.util.RestClientException;

/**
 * Flink's own REST client: reads the bounds of a job, and sets others for a vertex if they are given. Prints a line for
 * each vertex, or what the client makes of a refusal.
 *
 * <p>usage: Bounds ROOT JOB [VERTEX LOWER UPPER]
 */
public final class Bounds {
  public static void main(String[] args) throws Exception {
    URL root = new URL(args[0]);
    JobMessageParameters job = new JobMessageParameters();
    job.jobPathParameter.resolve(JobID.fromHexString(args[1]));
    try (RestClient client = RestClient.forUrl(new Configuration(), Runnable::run, root)) {
      Map<JobVertexID, JobVertexResourceRequirements> vertices = new LinkedHashMap<>(read(client, root, job));
      if (args.length > 2) {
        JobVertexID vertex = JobVertexID.fromHexString(args[2]);
        vertices.put(
            vertex,
            new JobVertexResourceRequirements(
                new JobVertexResourceRequirements.Parallelism(Integer.parseInt(args[3]), Integer.parseInt(args[4]))));
        client
            .sendRequest(
                root.getHost(),
                root.getPort(),
                new Update(root.getPath()),
                job,
                new JobResourceRequirementsBody(new JobResourceRequirements(vertices)))
            .join();
        vertices = read(client, root, job);
      }
      vertices.forEach(
          (id, bounds) ->
              System.out.println(
                  id + " " + bounds.getParallelism().getLowerBound() + " " + bounds.getParallelism().getUpperBound()));
    } catch (CompletionException e) {
      RestClientException refusal = (RestClientException) e.getCause();
      System.out.println(refusal.getHttpResponseStatus().code() + " " + refusal.getMessage());
    }
  }

  private static Map<JobVertexID, JobVertexResourceRequirements> read(
      RestClient client, URL root, JobMessageParameters job) throws Exception {
    return client
        .sendRequest(
            root.getHost(),
            root.getPort(),
            new Read(root.getPath()),
            job,
            EmptyRequestBody.getInstance())
        .join()
        .asJobResourceRequirements()
        .orElseThrow()
        .getJobVertexParallelisms();
  }

  // A server below a path: as Flink's own SQL client tells its REST client of one.

  private static final class Read extends JobResourceRequirementsHeaders {
    private final String path;

    Read(String path) {
      this.path = path;
    }

    @Override
    public String getTargetRestEndpointURL() {
      return path + "/" + RestClient.VERSION_PLACEHOLDER + super.getTargetRestEndpointURL();
    }
  }

  private static final class Update extends JobResourcesRequirementsUpdateHeaders {
    private final String path;

    Update(String path) {
      this.path = path;
    }

    @Override
    public String getTargetRestEndpointURL() {
      return path + "/" + RestClient.VERSION_PLACEHOLDER + super.getTargetRestEndpointURL();
    }
  }
}

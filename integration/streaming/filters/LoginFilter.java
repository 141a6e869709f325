import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.FilterConfig;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/** Lets anybody in who knows the password, and tells Spark the name: a basic login, as organisations put before a UI. */
public final class LoginFilter implements Filter {
  private String password;

  @Override
  public void init(FilterConfig config) {
    password = config.getInitParameter("password");
  }

  @Override
  public void doFilter(ServletRequest asked, ServletResponse answer, FilterChain chain)
      throws IOException, ServletException {
    HttpServletRequest request = (HttpServletRequest) asked;
    String header = request.getHeader("Authorization");
    String[] login = header != null && header.startsWith("Basic ") ? read(header.substring(6)) : new String[0];
    if (login.length == 2 && login[1].equals(password)) {
      chain.doFilter(named(request, login[0]), answer);
    } else {
      HttpServletResponse response = (HttpServletResponse) answer;
      response.setHeader("WWW-Authenticate", "Basic realm=\"Spark\"");
      response.sendError(HttpServletResponse.SC_UNAUTHORIZED, "who are you?");
    }
  }

  private static String[] read(String basic) {
    return new String(Base64.getDecoder().decode(basic), StandardCharsets.UTF_8).split(":", 2);
  }

  private static HttpServletRequest named(HttpServletRequest request, String user) {
    return new HttpServletRequestWrapper(request) {
      @Override
      public String getRemoteUser() {
        return user;
      }
    };
  }
}

// Builds the shim for one line of spark-versions.txt: the first one, or -Dspark=X.Y_SCALA, as in the jar's name.
// `make jar` calls this for every version, and puts the jars where the Python package finds them.

val columns = Seq("spark", "jars", "pyspark", "scala", "java", "py4j", "sources")

val supported = IO
  .readLines(file("spark-versions.txt"))
  .map(_.trim)
  .filterNot(line => line.isEmpty || line.startsWith("#"))
  .map(line => columns.zip(line.split("\\s+")).toMap)

def minor(version: String): String = version.split('.').take(2).mkString(".")

// The versions of Spark and Scala that a jar is for, as in its name.
def builtFor(of: Map[String, String]): String = s"${minor(of("spark"))}_${minor(of("scala"))}"

// All of them, for the message of a jar that meets another Spark.
val jars = supported.map(builtFor)

val row = sys.props.get("spark") match {
  case None => supported.head
  case Some(wanted) =>
    supported
      .find(builtFor(_) == wanted)
      .getOrElse(sys.error(s"Spark $wanted is not in spark-versions.txt: ${jars.mkString(", ")}"))
}

// Both builds have the version of the Python package.
val projectVersion = "(?m)^__version__ = \"(.+)\"$".r
  .findFirstMatchIn(IO.read(file("python/spark_elastic/version.py")))
  .map(_.group(1))
  .getOrElse(sys.error("python/spark_elastic/version.py has no line __version__ = \"...\""))

// The jars of a PySpark, for a release that is not on Maven Central: jvm-shim/build_jar.py provides them.
val sparkJars = Some(row("jars")).filter(_ == "pyspark").map { _ =>
  file(
    sys.props
      .getOrElse("spark.jars", sys.error(s"-Dspark.jars=FOLDER is needed, the jars of PySpark ${row("pyspark")}")))
}

ThisBuild / scalaVersion := row("scala")

lazy val shim = Project("jvm-shim", file("jvm-shim")).settings(
  name := "spark-elastic",
  organization := "io.github.spark-elastic",
  version := projectVersion,
  // One folder per jar, so that each keeps its own incremental compiler state.
  target := baseDirectory.value / "target" / s"spark-${builtFor(row)}",
  Compile / unmanagedSourceDirectories ++= row("sources")
    .split(",")
    .toSeq
    .map(folder => (Compile / sourceDirectory).value / folder)
    .filter(_.isDirectory),
  libraryDependencies ++= {
    if (sparkJars.isDefined) Nil
    else
      Seq("org.apache.spark" %% "spark-sql" % row("spark") % Provided, "net.sf.py4j" % "py4j" % row("py4j") % Provided)
  },
  Compile / unmanagedJars ++= sparkJars.toSeq.flatMap(folder => (folder * "*.jar").classpath),
  scalacOptions ++= Seq(
    "-release",
    row("java"),
    "-encoding",
    "utf8",
    "-deprecation",
    "-feature",
    "-unchecked",
    "-Xlint",
    "-Werror"),
  // Any Java must be able to load the class that spark.plugins names, and log why it does nothing there.
  javacOptions ++= Seq("--release", "8", "-encoding", "utf8", "-Xlint:all,-options,-classfile", "-Werror"),
  // Build properties that the shim reads, for the handshake among others.
  Compile / resourceGenerators += Def.task {
    val properties = (Compile / resourceManaged).value / "spark-elastic.properties"
    val built = Seq(
      "version" -> version.value,
      "spark" -> row("spark"),
      "scala" -> scalaVersion.value,
      "jars" -> jars.mkString(","))
    IO.writeLines(properties, built.map { case (name, value) => s"$name=$value" })
    Seq(properties)
  },
  // The record of the Spark that the shim was compiled with: see Linkage.scala, which writes it.
  Compile / packageBin / mappings += {
    val record = target.value / "spark-elastic-linkage.txt"
    (Compile / runner).value
      .run(
        "org.apache.spark.elastic.Linkage",
        (Compile / fullClasspath).value.files,
        Seq(record.getPath),
        streams.value.log)
      .get
    record -> record.getName
  },
  // A fixed path: jvm-shim/build_jar.py takes the jar from here.
  Compile / packageBin / artifactPath :=
    target.value / s"spark-elastic_${builtFor(row)}-${version.value}.jar")

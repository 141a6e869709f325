package org.apache.spark.sql.elastic;

import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.ScanFileListing;

/** What a scan of files reads; it is protected in Scala, which is public in the class file. */
final class FileScanAccess {
  private FileScanAccess() {}

  /** The files that filters have left, those at run time among them. */
  static ScanFileListing files(FileSourceScanExec scan) {
    return scan.dynamicallySelectedPartitions();
  }
}

/** How to reach a bucket. Defaults come from the standard AWS sources: environment, shared files, instance roles. */
export interface S3Options {
  /** URL of an S3-compatible store, addressed path-style. Default `AWS_ENDPOINT_URL_S3`, then `AWS_ENDPOINT_URL`. */
  readonly endpoint?: string | undefined
  readonly region?: string | undefined
  /** Default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** Larger objects are uploaded in parts of this size, or larger ones if that took more than 10,000. Default 16 MiB. */
  readonly partBytes?: number | undefined
}

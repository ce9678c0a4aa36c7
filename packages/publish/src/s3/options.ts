/** How a bucket is reached. What is absent is found as the tools of AWS find it: environment, shared files, roles. */
export interface S3Options {
  /** Of a store that is not Amazon's; addressed by path. Default `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`. */
  readonly endpoint?: string | undefined
  readonly region?: string | undefined
  /** The environment; default that of the process. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** Objects above this size are sent in parts of it, or of more where 10,000 would not do. Default 16 MiB. */
  readonly partBytes?: number | undefined
}

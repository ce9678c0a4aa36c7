/** An answer that breaks the protocol or its bounds: the file is fetched without the service. */
export class XetAnswerError extends Error {
  override readonly name = 'XetAnswerError'
}

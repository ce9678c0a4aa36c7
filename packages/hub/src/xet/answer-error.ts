/** An answer that is not of the protocol, or not within its bounds: the file is fetched as if there were no such service. */
export class XetAnswerError extends Error {
  override readonly name = 'XetAnswerError'
}

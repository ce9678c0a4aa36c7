import { SwarmError } from '../errors.ts'

/** What ends a connection: the peer broke the protocol or one of our bounds. `what` follows "the peer sent". */
export const protocolError = (reason: string, what: string): SwarmError =>
  new SwarmError('E_PROTOCOL', reason, `the peer sent ${what}`)

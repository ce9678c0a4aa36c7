import { SwarmError } from '../errors.ts'

/** A violation of the protocol or a limit, which ends the connection. `what` completes "the peer sent". */
export const protocolError = (reason: string, what: string): SwarmError =>
  new SwarmError('E_PROTOCOL', reason, `the peer sent ${what}`)

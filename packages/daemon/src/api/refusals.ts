import { DaemonError } from '../errors.ts'

/** Responses for features that are disabled. Each throws the contract's error (spec err.4). */

const TURN_ON = 'set "[swarm] enabled" to true in the configuration and start the daemon again'

/** @throws DaemonError `E_NOT_IMPLEMENTED` */
export function swarmIsOff(): never {
  throw new DaemonError('E_NOT_IMPLEMENTED', `the swarm client is off; ${TURN_ON}`)
}

/** @throws DaemonError `E_SOURCE_UNAVAILABLE` with the status 503 */
export function catalogIsOff(): never {
  throw new DaemonError('E_SOURCE_UNAVAILABLE', `the catalog needs the swarm client, which is off; ${TURN_ON}`, {
    status: 503
  })
}

/** @throws DaemonError `E_SOURCE_UNAVAILABLE` */
export function noHub(): never {
  throw new DaemonError('E_SOURCE_UNAVAILABLE', 'this daemon was built without the hub source')
}

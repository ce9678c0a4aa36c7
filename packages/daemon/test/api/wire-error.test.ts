import { constants } from 'node:os'
import { getSystemErrorName } from 'node:util'
import { CasError } from '@svc/cas'
import { HubError } from '@svc/hub'
import { SwarmError } from '@svc/swarm'
import { expect, test } from 'vitest'
import { toWireError } from '../../src/api/wire-error.ts'

const systemError = (errno: number, syscall: string): Error =>
  Object.assign(new Error('as the system says'), { errno: -errno, code: getSystemErrorName(-errno), syscall })

/** Node's error for a package description that it cannot read: only its message has the errno. */
const unloaded = (words: string): Error =>
  Object.assign(new Error(`Cannot read package config /x/undici/package.json: ${words}.`), {
    code: 'ERR_INVALID_PACKAGE_CONFIG'
  })

const { EIO, EDQUOT, ENOSPC, EMFILE, EROFS, EACCES, EPERM, ENAMETOOLONG } = constants.errno

test.each([
  ['a read', systemError(EIO, 'read'), 'E_INTERNAL', '(EIO)'],
  ['a full disk behind the swarm', storage(systemError(ENOSPC, 'write')), 'E_NO_SPACE', '(ENOSPC)'],
  ['a quota, which Node does not name', storage(systemError(EDQUOT, 'write')), 'E_NO_SPACE', '(EDQUOT)'],
  ['a read-only file system', systemError(EROFS, 'mkdir'), 'E_INTERNAL', '(EROFS)'],
  ['a folder of somebody else', systemError(EACCES, 'mkdir'), 'E_INTERNAL', '(EACCES)'],
  ['what is not permitted', systemError(EPERM, 'rename'), 'E_INTERNAL', '(EPERM)'],
  ['a name that is too long', systemError(ENAMETOOLONG, 'open'), 'E_INTERNAL', '(ENAMETOOLONG)'],
  ['no descriptor', systemError(EMFILE, 'open'), 'E_INTERNAL', '(EMFILE)'],
  ['code that the disk does not give', unloaded('i/o error'), 'E_INTERNAL', '(EIO)'],
  ['code that the quota does not give', unloaded(`Unknown system error -${EDQUOT}`), 'E_NO_SPACE', '(EDQUOT)'],
  ['a thread whose code the disk does not give', lost(unloaded('i/o error')), 'E_INTERNAL', '(EIO)']
])('%s: its code, and the error of the disk', (_, error, code, said) => {
  const { envelope, hidden } = toWireError(error)
  expect([envelope.error.code, hidden]).toEqual([code, true])
  expect(envelope.error.message).toContain(said)
})

test('an error of the network is not reported as one of the disk', () => {
  const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET', syscall: 'read' })
  const error = new HubError('E_SOURCE_UNAVAILABLE', 'unreachable', 'no answer', {}, reset)
  expect(toWireError(error).envelope.error).toEqual({ code: 'E_SOURCE_UNAVAILABLE', message: 'no answer' })
})

function storage(cause: Error): SwarmError {
  return new SwarmError('E_STORAGE', 'write', 'writing piece 1 failed', { cause })
}
function lost(cause: Error): CasError {
  return new CasError('E_THREAD', 'a hashing thread ended unexpectedly', {}, cause)
}

import { openSync } from 'node:fs'
import { connect } from 'node:net'
import { constants } from 'node:os'
import { expect, test } from 'vitest'
import { diskErrorOf, unloadedCode } from '../src/index.ts'

test('disk errors are distinguished from network errors, also as causes', async () => {
  const ofDisk = thrownBy(() => openSync('/dev/null/x', 'r'))
  expect(diskErrorOf(ofDisk)).toBe(ofDisk)
  expect(diskErrorOf(new Error('a thread ended', { cause: new Error('x', { cause: ofDisk }) }))).toBe(ofDisk)
  const refused = await new Promise((resolve) => connect({ host: '127.0.0.1', port: 1 }).on('error', resolve))
  expect(refused).toMatchObject({ syscall: 'connect' })
  const loop = new Error('loop')
  loop.cause = loop
  const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET', syscall: 'read' })
  const unknown = Object.assign(new Error('no such name'), { code: 'ENOTFOUND', syscall: 'getaddrinfo' })
  const unreachable = Object.assign(new Error('no way there'), { code: 'EACCES', syscall: 'connect' })
  for (const error of [refused, reset, unknown, unreachable, loop, new Error('x'), null, undefined, 'x'])
    expect(diskErrorOf(error)).toBeUndefined()
})

test('code that cannot be loaded from disk: the error of the disk', () => {
  for (const [words, code, errno] of [
    ['i/o error', 'EIO', -constants.errno.EIO],
    ['too many open files', 'EMFILE', -constants.errno.EMFILE],
    ['Unknown system error -122', 'Unknown system error -122', -122]
  ] as const) {
    const said = Object.assign(new Error(`Cannot read package config /a: b/package.json: ${words}.`), {
      code: 'ERR_INVALID_PACKAGE_CONFIG'
    })
    expect(diskErrorOf(new Error('a thread ended', { cause: said }))).toMatchObject({ code, errno, cause: said })
  }
  const broken = Object.assign(new Error('Invalid package config: x'), { code: 'ERR_INVALID_PACKAGE_CONFIG' })
  for (const other of [broken, new Error('i/o error'), undefined]) expect(unloadedCode(other)).toBeUndefined()
})

function thrownBy(work: () => unknown): unknown {
  try {
    return work()
  } catch (error) {
    return error
  }
}

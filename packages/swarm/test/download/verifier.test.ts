import { closeSync, existsSync, openSync } from 'node:fs'
import { constants } from 'node:os'
import { expect, onTestFinished, test } from 'vitest'
import { Verifier } from '../../src/download/verifier.ts'

test.skipIf(!existsSync('/dev/full'))('a refused write reports the whole error, with its errno', async () => {
  const verifier = new Verifier(1)
  const fd = openSync('/dev/full', 'w')
  onTestFinished(async () => {
    await verifier.close()
    closeSync(fd)
  })
  const buffer = new SharedArrayBuffer(16_384)
  const job = { buffer, sizeBytes: 16_384, write: { fd, position: 0 } }
  expect(await verifier.submit(job)).toMatchObject({
    outcome: 'failed',
    // some errors have no name in Node, and only this tells a full quota
    error: { code: 'ENOSPC', errno: -constants.errno.ENOSPC, syscall: 'write' }
  })
})

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { CERTIFICATE } from './certificate.ts'

/** What a range thread says of its servers. A thread that hangs ends with its process, which is killed. */
function saidWith(env: NodeJS.ProcessEnv): unknown {
  const child = fileURLToPath(new URL('./tls-child.ts', import.meta.url))
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--conditions=svc-source', child], {
    encoding: 'utf8',
    timeout: 60_000,
    killSignal: 'SIGKILL',
    env: { ...process.env, NODE_OPTIONS: '', ...env }
  })
  expect([status, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

test('a range thread outlives heads that are too long or too slow, and files that cannot be written to, over TLS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-hub-tls-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'ca.pem'), CERTIFICATE)
  expect(saidWith({ NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') })).toEqual({
    file: 'done',
    longHead: 'form',
    slowHead: 'ERR_STALLED',
    unwritable: 'unwritable',
    otherName: 'ERR_TLS_CERT_ALTNAME_INVALID',
    fileAgain: 'done'
  })
})

test('a range thread takes nothing from a server whose certificate nobody vouches for', () => {
  const said = saidWith({ NODE_EXTRA_CA_CERTS: '' }) as Record<string, unknown>
  expect(new Set(Object.values(said))).toEqual(new Set(['DEPTH_ZERO_SELF_SIGNED_CERT']))
})

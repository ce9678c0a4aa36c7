import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { CERTIFICATE } from '../../../hub/test/certificate.ts'

test('trackers over TLS: no redirect from https to http is followed, at any hop', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-tracker-tls-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const authority = join(folder, 'ca.pem')
  writeFileSync(authority, CERTIFICATE)
  const child = fileURLToPath(new URL('./tls-tracker-child.ts', import.meta.url))
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--conditions=svc-source', child], {
    encoding: 'utf8',
    timeout: 60_000,
    killSignal: 'SIGKILL',
    env: { ...process.env, NODE_OPTIONS: '', NODE_EXTRA_CA_CERTS: authority }
  })
  expect([status, stderr]).toEqual([0, ''])
  expect(JSON.parse(stdout)).toEqual({
    direct: ['1.2.3.4', 'https /end'],
    over: ['1.2.3.4', 'https /over', 'https /end'],
    up: ['1.2.3.4', 'http /up', 'https /end'],
    down: ['failed', 'https /down'],
    twice: ['failed', 'https /twice', 'https /down']
  })
})

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { CERTIFICATE } from './certificate.ts'

const CHILD = new URL('./tls-child.ts', import.meta.url)
const TRUNCATION_CHILD = new URL('./tls-truncation-child.ts', import.meta.url)

/** What a range thread says of its servers. A thread that hangs ends with its process, which is killed. */
function saidWith(env: NodeJS.ProcessEnv, program = CHILD): unknown {
  const child = fileURLToPath(program)
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--conditions=svc-source', child], {
    encoding: 'utf8',
    timeout: 60_000,
    killSignal: 'SIGKILL',
    env: { ...process.env, NODE_OPTIONS: '', ...env }
  })
  expect([status, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

function withCertificate(): NodeJS.ProcessEnv {
  const folder = mkdtempSync(join(tmpdir(), 'svc-hub-tls-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'ca.pem'), CERTIFICATE)
  return { NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') }
}

test('a range thread outlives heads that are too long or too slow, and files that cannot be written to, over TLS', () => {
  expect(saidWith(withCertificate())).toEqual({
    file: 'done',
    longHead: 'form',
    slowHead: 'ERR_STALLED',
    unwritable: 'unwritable',
    otherName: 'ERR_TLS_CERT_ALTNAME_INVALID',
    fileAgain: 'done'
  })
})

test('a range thread accepts nothing from a server with an untrusted certificate', () => {
  const said = saidWith({ NODE_EXTRA_CA_CERTS: '' }) as Record<string, unknown>
  expect(new Set(Object.values(said))).toEqual(new Set(['DEPTH_ZERO_SELF_SIGNED_CERT']))
})

test('content cut off below TLS never counts as complete, in a thread or in the client', () => {
  const size = 600_001
  expect(saidWith(withCertificate(), TRUNCATION_CHILD)).toEqual({
    rangeWhole: ['done', size, true],
    // all that was announced is there: how the connection ends says nothing more
    rangeAtItsEnd: ['done', size, true],
    rangeResetAtItsEnd: [true],
    rangeLastByte: ['ECONNRESET', size - 1, true],
    rangeMiddle: ['ECONNRESET', 300_000, true],
    rangeEndedInTheMiddle: ['ECONNRESET', 300_000, true],
    rangeReset: [true],
    clientAtItsEnd: ['done', size, true],
    clientLastByte: ['unreachable', size - 1, true],
    clientMiddle: ['unreachable', 300_000, true],
    clientWithoutLength: ['unreachable', 300_000, true],
    clientChunk: ['unreachable', 300_000, true],
    goesOn: ['done, by threads', size, true]
  })
})

// What only a real process shows: signals, pipes that close, exit codes, bytes on stdout.
import { existsSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import type { Job } from '@svc/client'
import { makeModelFolder } from '@svc/testkit/models'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { laterUndo, svcProcess, type TestDaemon, testDaemon } from './support.ts'

// A job that never ends, which the real daemon does not offer on demand; the server speaks the same protocol.
const job: Job = {
  id: 'abcdef',
  kind: 'import-hf',
  ref: 'org/name',
  as: 'org/name',
  state: 'fetching',
  createdAt: '2026-01-01T00:00:00.000Z',
  filesDone: 1,
  filesTotal: 3,
  bytesDone: 1024,
  bytesTotal: 4096,
  message: 'bad \u001b[31mname'
}

const undo = laterUndo()
let daemon: TestDaemon
let server: Server
let endless: string

beforeAll(async () => {
  daemon = await testDaemon({}, undo.later)
  endless = join(daemon.folder, 'endless.sock')
  server = createServer((request, response) => {
    request.resume()
    response.writeHead(request.method === 'POST' ? 201 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ ...job, namespaces: [] }))
  })
  await new Promise<void>((done) => server.listen(endless, done))
  undo.later(async () => {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  })
}, 60_000)
afterAll(undo.all)

it('Ctrl-C while watching leaves the job and says how to look again', async () => {
  const ran = await svcProcess(['import', 'hf', 'org/name', '--all'], {
    socketPath: endless,
    when: { stderr: 'org/name', act: (child) => void child.kill('SIGINT') }
  })
  expect(ran).toMatchObject({ code: 130, stdout: '' })
  expect(ran.stderr).toContain('svc jobs abcdef --follow')
  expect(ran.stderr).not.toContain('\u001b')
})

it.skipIf(!existsSync('/dev/full'))('a full disk at stdout is reported', async () => {
  const ran = await svcProcess(['jobs', 'abcdef', '--json'], { socketPath: endless, stdoutTo: '/dev/full' })
  expect(ran).toMatchObject({ code: 1, stdout: '' })
  expect(ran.stderr).toMatch(/^svc: .*no space/)
  expect(ran.stderr.split('\n')).toHaveLength(2)
})

it('closing the pipe is not a failure', async () => {
  const ran = await svcProcess(['jobs', 'abcdef', '--follow', '--json'], { socketPath: endless, closeStdout: true })
  expect(ran).toMatchObject({ code: 0, stderr: '' })
})

it('svc resolves paths in its folder, prints bytes verbatim, and exits with the code', async () => {
  makeModelFolder(join(daemon.folder, 'Tiny'), { ggufs: { q8_0: 'Q8_0' } })
  const run = (...args: string[]) => svcProcess(args, { socketPath: daemon.socketPath, cwd: daemon.folder })
  expect(await run('import', 'local', 'Tiny', '--as', 'acme/tiny')).toMatchObject({
    code: 0,
    stdout: 'acme/tiny:bf16\nacme/tiny:q8_0\n'
  })
  const whole = readFileSync(join(daemon.folder, 'Tiny/tiny-q8_0.gguf')).toString('latin1')
  const [bytes, missing] = await Promise.all([run('cat', 'acme/tiny:q8_0'), run('path', 'acme/none:q8_0')])
  expect(bytes.stdout === whole).toBe(true)
  expect(missing).toMatchObject({ code: 3, stdout: '' })
}, 60_000)

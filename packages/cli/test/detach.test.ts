import { createServer, type Server } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Job } from '@svc/client'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { svc } from './support.ts'

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

let server: Server
let folder: string
const socketPath = (): string => join(folder, 's.sock')

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-detach-'))
  server = createServer((request, response) => {
    request.resume()
    response.writeHead(request.method === 'POST' ? 201 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(job))
  })
  await new Promise<void>((done) => server.listen(socketPath(), done))
})
afterAll(async () => {
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
  rmSync(folder, { recursive: true, force: true })
})

it('Ctrl-C while watching leaves the job and says how to look again', async () => {
  const ran = await svc(['import', 'hf', 'org/name'], {
    socketPath: socketPath(),
    when: { stderr: 'org/name', act: (child) => void child.kill('SIGINT') }
  })
  expect(ran).toMatchObject({ code: 130, stdout: '' })
  expect(ran.stderr).toContain('svc jobs abcdef --follow')
  expect(ran.stderr).not.toContain('\u001b')
})

it('a reader that goes away is no failure', async () => {
  const ran = await svc(['jobs', 'abcdef', '--follow', '--json'], { socketPath: socketPath(), closeStdout: true })
  expect(ran).toMatchObject({ code: 0, stderr: '' })
})

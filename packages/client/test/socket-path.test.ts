import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createClient } from '../src/index.ts'
import { defaultSocketPath, socketFolderProblem } from '../src/protocol.ts'

it.each([
  [{ SVC_SOCKET: '/a/b.sock', XDG_RUNTIME_DIR: '/run/user/7' }, '/a/b.sock'],
  [{ SVC_SOCKET: 'rel.sock' }, 'rel.sock'],
  [{ SVC_SOCKET: '', XDG_RUNTIME_DIR: '/run/user/7', TMPDIR: '/t' }, '/run/user/7/svc-7/svc.sock'],
  [{ XDG_RUNTIME_DIR: '', TMPDIR: '/t/' }, '/t/svc-7/svc.sock'],
  [{ XDG_RUNTIME_DIR: 'relative', TMPDIR: 'too' }, '/tmp/svc-7/svc.sock'],
  [{}, '/tmp/svc-7/svc.sock']
])('%j gives %s', (env, path) => {
  expect(defaultSocketPath(env, 7)).toBe(path)
})

it('trusts only a plain folder that the user owns and others cannot enter', () => {
  const own = { isFolder: true, uid: 7, mode: 0o40700 }
  expect(socketFolderProblem(own, 7)).toBeUndefined()
  expect(socketFolderProblem({ ...own, isFolder: false }, 7)).toBeDefined()
  expect(socketFolderProblem({ ...own, uid: 8 }, 7)).toBeDefined()
  for (const mode of [0o710, 0o701, 0o720, 0o777]) expect(socketFolderProblem({ ...own, mode }, 7)).toBeDefined()
})

it('sends nothing to a socket in a temporary folder that others can change or swap', async () => {
  const base = mkdtempSync(join(tmpdir(), 'svc-socket-'))
  onTestFinished(() => rmSync(base, { recursive: true }))
  const env = { TMPDIR: base }
  const path = defaultSocketPath(env, process.geteuid!())
  const folder = dirname(path)
  mkdirSync(folder, { mode: 0o700 })
  let asked = 0
  const server = createServer((_request, response) => {
    asked++
    response.end('{"jobs":[]}')
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  onTestFinished(() => void server.close())
  const client = createClient({ env })
  onTestFinished(() => client.close())
  const refused = expect.objectContaining({ code: 'E_UNSAFE_SOCKET' })

  expect(await client.jobs()).toEqual([])
  chmodSync(folder, 0o770)
  await expect(client.jobs()).rejects.toEqual(refused)
  chmodSync(folder, 0o700)
  renameSync(folder, `${folder}-moved`)
  symlinkSync(`${folder}-moved`, folder)
  await expect(client.jobs()).rejects.toEqual(refused)
  expect(asked).toBe(1)
  // a path that somebody names is that somebody's choice
  for (const named of [createClient({ env: { ...env, SVC_SOCKET: path } }), createClient({ socketPath: path })]) {
    expect(await named.jobs()).toEqual([])
    named.close()
  }
})

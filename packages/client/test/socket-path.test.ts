import { expect, it } from 'vitest'
import { defaultSocketPath } from '../src/protocol.ts'

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

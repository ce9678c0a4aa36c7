import { expect, test } from 'vitest'
import { socketServed } from '../src/daemon-process.ts'

test("derives the daemon's socket from a command line", () => {
  const env = { XDG_RUNTIME_DIR: '/run/user/7' }
  const rows: readonly (readonly [line: string, socket: string | undefined])[] = [
    ['/bin/sh /x/bin/svcd', '/run/user/7/svc-7/svc.sock'],
    ['/x/node --max-old-space-size=64 /x/svcd.cjs --root /r --log-level=debug', '/run/user/7/svc-7/svc.sock'],
    ['/usr/bin/svcd --socket /s --root /r --no-seed-verify', '/s'],
    ['svcd --socket=s.sock', 's.sock'],
    ['svcd --root --check', '/run/user/7/svc-7/svc.sock'],
    ['svcd --check', undefined],
    ['svcd move /elsewhere', undefined],
    ['svcd --root /r tag ls', undefined],
    ['vi /x/bin/svcd', undefined],
    ['node other.js svcd', undefined]
  ]
  for (const [line, socket] of rows) expect([line, socketServed(line.split(' '), env, 7)]).toEqual([line, socket])
  expect(socketServed(['svcd'], { ...env, SVC_SOCKET: '/mine' }, 7)).toBe('/mine')
})

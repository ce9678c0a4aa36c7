// A system that has neither names below `localhost` nor more than one loopback address, as some macOS: here, a network namespace.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { SVC } from '@svc/testkit/programs'
import { expect, it, onTestFinished } from 'vitest'

const canMakeNetworks = process.platform === 'linux' && process.getuid?.() === 0

const SCRIPT = `
ip link set lo up && ip addr del 127.0.0.1/8 dev lo && ip addr add 127.0.0.1/32 dev lo || exit
mkfifo links
"$@" ui --no-open > links & command=$!
read -r link < links
echo "$link"
curl -s -D - -o /dev/null "$link"
kill -INT $command
wait $command
`

it.skipIf(!canMakeNetworks)(
  'on the one address that there is, the page tells the browser to forget, and the person how (needs root)',
  async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'svc-ui-test-'))
    onTestFinished(() => rmSync(cwd, { recursive: true, force: true }))
    const words = ['--net', 'sh', '-c', SCRIPT, 'sh', process.execPath, ...SVC]
    const env = { PATH: process.env.PATH, SVC_SOCKET: join(cwd, 'none.sock') }
    const { stdout, stderr } = await promisify(execFile)('unshare', words, { cwd, env })
    expect(stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#[\w-]{43}\nHTTP\/1\.1 403 /)
    expect(stdout).toContain('\r\nClear-Site-Data: "cache", "storage"\r\n')
    expect(stderr).toContain('private window')
  }
)

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { expectFiles } from './engines.ts'
import { makeTorrent } from './torrent-fixture.ts'

const CHILD = fileURLToPath(new URL('./lsd-child.ts', import.meta.url))
const SPACE = `svc-lsd-${process.pid}`
const ip = (...args: string[]): void => void execFileSync('ip', args, { stdio: 'pipe' })

/** Making a namespace takes the rights of an administrator. */
const canMake =
  spawnSync('ip', ['netns', 'add', `${SPACE}-try`]).status === 0 &&
  spawnSync('ip', ['netns', 'del', `${SPACE}-try`]).status === 0

async function said(child: ChildProcess, word: string): Promise<void> {
  for await (const line of createInterface({ input: child.stdout! })) if (line === word) return
  throw new Error(`the engine ended before it said ${word}`)
}

// The multicast stays within a network of one machine that exists for this test alone.
test.runIf(canMake)('two engines find each other by multicast', { timeout: 120_000 }, async () => {
  const fixture = await makeTorrent({ a: 500_000 }, 65_536)
  onTestFinished(() => fixture.remove())
  const target = await fixture.target('leech')
  ip('netns', 'add', SPACE)
  onTestFinished(() => ip('netns', 'del', SPACE))
  ip('-n', SPACE, 'link', 'set', 'lo', 'up')
  ip('-n', SPACE, 'link', 'add', 'lan0', 'type', 'veth', 'peer', 'name', 'lan1')
  ip('-n', SPACE, 'addr', 'add', '10.77.0.1/24', 'dev', 'lan0')
  ip('-n', SPACE, 'link', 'set', 'lan0', 'up')
  ip('-n', SPACE, 'link', 'set', 'lan1', 'up')
  const start = (folder: string, role: string): ChildProcess => {
    const args = [
      'netns',
      'exec',
      SPACE,
      process.execPath,
      '--conditions=svc-source',
      CHILD,
      fixture.torrentFile,
      folder,
      role
    ]
    const child = spawn('ip', args, { stdio: ['pipe', 'pipe', 'inherit'] })
    onTestFinished(async () => {
      const gone = new Promise((resolve) => child.once('exit', resolve))
      child.stdin!.end()
      await gone
    })
    return child
  }
  await said(start(fixture.folder, 'seed'), 'ready')
  await said(start(target, 'leech'), 'done')
  await expectFiles(fixture, target)
  expect.assertions(fixture.files.size)
})

test.runIf(canMake && process.platform === 'linux')(
  'a unicast datagram from another network is ignored',
  { timeout: 120_000 },
  () => {
    const space = `${SPACE}-u`
    ip('netns', 'add', space)
    onTestFinished(() => ip('netns', 'del', space))
    ip('-n', space, 'link', 'set', 'lo', 'up')
    ip('-n', space, 'link', 'add', 'lan0', 'type', 'veth', 'peer', 'name', 'lan1')
    ip('-n', space, 'addr', 'add', '10.77.0.1/24', 'dev', 'lan0')
    ip('-n', space, 'addr', 'add', '10.99.0.9/32', 'dev', 'lo')
    ip('-n', space, 'link', 'set', 'lan0', 'up')
    ip('-n', space, 'link', 'set', 'lan1', 'up')
    const child = fileURLToPath(new URL('./lsd-unicast-child.ts', import.meta.url))
    const args = ['netns', 'exec', space, process.execPath, '--conditions=svc-source', child, '10.77.0.1', '10.99.0.9']
    const { stdout } = spawnSync('ip', args, {
      encoding: 'utf8',
      timeout: 60_000,
      stdio: ['ignore', 'pipe', 'inherit']
    })
    expect(JSON.parse(stdout)).toEqual(['10.77.0.1'])
  }
)

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeModelFolder } from '@svc/testkit/models'
import { SVCD } from '@svc/testkit/programs'
import { describe, expect, it } from 'vitest'
import { StartError } from '../src/errors.ts'
import { parseFlags } from '../src/flags.ts'
import { createLog } from '../src/log.ts'
import { temporaryFolder, testDaemon } from './support/daemon.ts'

function lines(): { readonly all: string[]; write(line: string): void } {
  const all: string[] = []
  return { all, write: (line) => void all.push(line) }
}

describe('text logs', () => {
  it('are time, message and fields; other levels than info are named', () => {
    const seen = lines()
    const log = createLog('debug', 'text', seen)
    log.info({ socket: '/run/s.sock', pid: 7, quants: ['q8_0'], note: 'two words', empty: '' }, 'listening')
    log.warn({}, 'careful')
    expect(seen.all.map((line) => line.replace(/^\d\d:\d\d:\d\d /, ''))).toEqual([
      'listening socket=/run/s.sock pid=7 quants=q8_0 note="two words" empty=""\n',
      'warn: careful\n'
    ])
    expect(seen.all.every((line) => /^\d\d:\d\d:\d\d /.test(line))).toBe(true)
  })

  it('show the stack of an error, hide credentials, and contain no control characters', () => {
    const seen = lines()
    const log = createLog('info', 'text', seen)
    log.error({ err: new TypeError('no\u001b[2Jgood'), token: 'hf_secret' }, 'bad \u001b[31mname\nx')
    const text = seen.all.join('')
    expect(text).toMatch(/^\d\d:\d\d:\d\d error: bad \\u001b\[31mname\\u000ax token=\[redacted\]\n {4}TypeError: /)
    expect(text).toContain('    at ')
    expect(text).not.toContain('\u001b')
    expect(text).not.toContain('hf_secret')
  })
})

const hasScript = spawnSync('script', ['--version']).status === 0

it.skipIf(!hasScript)('svcd logs text on a terminal, JSON elsewhere, and the format of the flag', async () => {
  const folder = temporaryFolder()
  const config = join(folder, 'c.toml')
  writeFileSync(config, '[swarm]\nenabled = false\n')
  const flags = ['--root', join(folder, 'r'), '--config', config, '--socket', join(folder, 's.sock')]
  const words = [process.execPath, ...SVCD, ...flags]
  /** The line that says that it listens; ends the daemon. */
  const listening = async (command: string, args: readonly string[]): Promise<string> => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    let text = ''
    let found = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (part: string) => {
        text += part
        found ||= text.split(/\r?\n/).find((line) => line.includes('listening') && line.includes('s.sock')) ?? ''
        if (found !== '') child.kill('SIGTERM')
      })
    }
    await once(child, 'close')
    return found || text
  }
  const [node, ...rest] = words
  expect(await listening('script', ['-qec', words.map((word) => `'${word}'`).join(' '), '/dev/null'])).toMatch(
    /^\d\d:\d\d:\d\d listening pid=/
  )
  expect(await listening(node!, rest)).toMatch(/^\{"level":"info".*"msg":"listening"\}$/)
  expect(await listening(node!, [...rest, '--log-format', 'text'])).toMatch(/^\d\d:\d\d:\d\d listening pid=/)
  expect(() => parseFlags(['--log-format', 'xml'])).toThrow(StartError)
})

it('a finished import leaves one line, a failed one another', async () => {
  const seen = lines()
  const folder = temporaryFolder()
  const daemon = await testDaemon({ folder, log: createLog('info', 'json', seen) })
  makeModelFolder(join(folder, 'tiny'), { ggufs: { q8_0: 'Q8_0' } })
  const done = await daemon.import([join(folder, 'tiny')], 'acme/tiny')
  const about = seen.all.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'imported')
  expect(about).toEqual([
    expect.objectContaining({
      level: 'info',
      job: done.id,
      kind: 'import-local',
      as: 'acme/tiny',
      quants: ['bf16', 'q8_0'],
      manifest: done.manifest
    })
  ])
  expect(about[0].bytes).toBeGreaterThan(0)
  expect(about[0].tookMs).toBeGreaterThanOrEqual(0)
})

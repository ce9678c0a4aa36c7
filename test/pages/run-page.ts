import { spawn } from 'node:child_process'
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Block, blocksOf } from './blocks.ts'
import { makeHome, type World } from './world.ts'

/** Places outside a home folder that pages name. They are folders of the run instead. */
const OUTSIDE = ['/media/disk', '/mnt/backup', '/mnt/big', '/mnt/new', '/srv/models', '/etc/svc'] as const

export interface PageRun {
  /** `page:line` of each block that ran. */
  readonly ran: readonly string[]
  /** `page:line: reason` of each that did not. */
  readonly notRun: readonly string[]
  /** `page:line: command` of each command that failed, with what was printed. */
  readonly failed: readonly string[]
}

const isShell = ({ language }: Block): boolean => ['sh', 'bash', 'console', 'shell'].includes(language)
/** A daemon without `&` takes the terminal; `--check` and `tag` end by themselves. */
const FOREGROUND = /^(?:bin\/)?svcd(?: --(?:root|config|socket) \S+)*(?= *(?:#.*)?$)/gm

/** Runs the shell blocks of a page in their order, in one bash with a home folder, and a daemon that the first command starts. */
export async function runPage(page: string, root: string, scratch: string, world: World): Promise<PageRun> {
  const folder = join(scratch, page.replace(/\W/g, '-'))
  const shell = blocksOf(readFileSync(join(root, page), 'utf8')).filter(isShell)
  const run = shell.filter(({ notRun }) => notRun === undefined)
  const place = (block: Block): string => `${page}:${block.line}`
  const result = {
    ran: run.map(place),
    notRun: shell.flatMap((block) => (block.notRun === undefined ? [] : [`${place(block)}: ${block.notRun}`]))
  }
  if (run.length === 0) return { ...result, failed: [] }
  for (const path of OUTSIDE) mkdirSync(join(folder, path), { recursive: true })
  writeFileSync(join(folder, 'etc/svc/config.toml'), '[swarm]\ndht = false\npeer_addr = "127.0.0.1:0"\n')
  const machines: Block[][] = []
  for (const block of run) {
    if (machines.length === 0 || block.isElsewhere) machines.push([])
    machines.at(-1)?.push(block)
  }
  const script = machines.flatMap((blocks, i) => {
    const home = `home${i}`
    makeHome(join(folder, home), root, world)
    return [
      `machine ${home}`,
      ...blocks.flatMap((block) => [
        `at ${place(block)}`,
        ...block.given,
        block.instead ?? block.code.replace(FOREGROUND, 'foreground $&')
      ])
    ]
  })
  const text = OUTSIDE.reduce((all, path) => all.replaceAll(path, join(folder, path)), script.join('\n'))
  const prelude = readFileSync(new URL('prelude.sh', import.meta.url), 'utf8')
  writeFileSync(join(folder, 'page.sh'), `${prelude}\n${text}\n`)
  const failures = join(folder, 'failed')
  const printed = join(folder, 'printed')
  const env = {
    SCRATCH: folder,
    CHECKOUT: root.replace(/\/$/, ''),
    STAND_INS: join(root, 'test/pages/stand-ins'),
    PRINTED: printed,
    HF_ENDPOINT: world.hub.endpoint,
    // each command is a process of its own: compiled code is kept between them.
    NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/svc-compile'),
    USER: process.env.USER ?? 'somebody',
    LANG: 'C.UTF-8'
  }
  const log = openSync(join(folder, 'log'), 'a')
  const child = spawn('bash', [join(folder, 'page.sh')], {
    env,
    stdio: ['ignore', openSync(printed, 'a'), log, openSync(failures, 'a')],
    detached: true
  })
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve))
  try {
    // the group: daemons that the page has started.
    process.kill(-(child.pid as number), 'SIGTERM')
  } catch {
    // nobody is left in it
  }
  const told = readFileSync(join(folder, 'log'), 'utf8').split(/^== /m)
  const failed = readFileSync(failures, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const section = told.find((text) => line.startsWith(`${text.split('\n', 1)[0]}: `))
      return `${line}\n${(section ?? '').split('\n').slice(1).slice(-12).join('\n')}`
    })
  return { ...result, failed: code === null ? [...failed, `${page}: bash was killed`] : failed }
}

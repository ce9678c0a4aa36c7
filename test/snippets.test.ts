// The TypeScript of README.md, docs/ and the packages' READMEs passes a strict type check, and every `svc` and `svcd` in them names
// commands and options that there are (test/commands.slow.ts runs them). Blocks that cannot pass say why in an HTML comment before them:
// `<!-- not checked: reason -->`; `<!-- given: declare const x: string -->` names what a block takes for granted. What the packages' examples print is compared by readme.test.ts in each package.
import { execFile } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { buildProgram } from '../packages/cli/src/program.ts'
import { HELP } from '../packages/daemon/src/flags.ts'
import { Output } from '../packages/internal/terminal/src/output.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const run = promisify(execFile)
/** As `pnpm test` says it: every package has been built. */
const isBuilt = process.env.SVC_TEST_BUILT === '1'

interface Block {
  readonly page: string
  readonly line: number
  readonly language: string
  readonly code: string
  /** Declarations that the block takes for granted. */
  readonly given: string
  readonly isChecked: boolean
}

const pages = globSync(['*.md', 'docs/**/*.md', 'packages/*/README.md', 'systemd/README.md'], {
  cwd: root,
  exclude: (path) => path.includes('node_modules')
})
const blocks = pages.flatMap((page): Block[] => {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(/(?:<!-- (not checked|given): (.+) -->\n+)?^```(\w+)\n([\s\S]*?)^```$/gm)].map((match) => ({
    page,
    line: text.slice(0, match.index).split('\n').length,
    language: match[3] ?? '',
    code: match[4] ?? '',
    given: match[1] === 'given' ? (match[2] ?? '') : '',
    isChecked: match[1] !== 'not checked'
  }))
})

test('the TypeScript of the pages passes a strict type check', async () => {
  const scratch = mkdtempSync(join(tmpdir(), 'svc-snippets-'))
  try {
    const files = blocks
      .filter(({ language, isChecked }) => (language === 'ts' || language === 'js') && isChecked)
      .map(({ page, line, code, given }) => {
        const name = `${page.replace(/[/.]/g, '-')}-${line}.ts`
        writeFileSync(join(scratch, name), `${code}\n${given}\nexport {}\n`)
        return name
      })
    expect(files.length).toBeGreaterThan(5)
    const exported = globSync('packages/*/package.json', { cwd: root }).flatMap((path) => {
      const json = JSON.parse(readFileSync(join(root, path), 'utf8')) as {
        name: string
        exports?: Record<string, { 'svc-source'?: string; types?: string }>
      }
      return Object.entries(json.exports ?? {}).flatMap(([subpath, target]): [string, string[]][] => {
        // readers compile against the declarations; to check all sources instead takes five times as long.
        const types = isBuilt ? target.types : target['svc-source']
        return types === undefined ? [] : [[`${json.name}${subpath.slice(1)}`, [join(root, path, '..', types)]]]
      })
    })
    mkdirSync(join(scratch, 'types'))
    writeFileSync(
      join(scratch, 'tsconfig.json'),
      JSON.stringify({
        extends: join(root, 'tsconfig.base.json'),
        compilerOptions: {
          noEmit: true,
          noUnusedLocals: false,
          customConditions: isBuilt ? [] : ['svc-source'],
          // what `strict` says is what readers have; the stricter options are our own habits.
          noUncheckedIndexedAccess: false,
          exactOptionalPropertyTypes: false,
          paths: Object.fromEntries(exported),
          typeRoots: [join(root, 'node_modules/@types')]
        },
        files
      })
    )
    writeFileSync(join(scratch, 'package.json'), '{"type":"module"}')
    const tsc = join(root, 'node_modules/.bin/tsc')
    const { stdout } = await run(tsc, ['-p', scratch], { cwd: scratch }).catch((error: { stdout: string }) => error)
    expect(
      stdout
        .trim()
        .split('\n')
        .filter((line) => line !== '')
    ).toEqual([])
  } finally {
    rmSync(scratch, { recursive: true })
  }
})

/** `svc …` and `svcd …` as the shell blocks have them, and as code within sentences and tables. */
const commands = [
  ...blocks
    .filter(({ language, isChecked }) => language === 'sh' && isChecked)
    .map(({ page, code }) => ({ page, text: code.replace(/(^|\s)#.*$/gm, '') })),
  ...pages.flatMap((page) =>
    [...readFileSync(join(root, page), 'utf8').matchAll(/`(svcd? [^`]+)`/g)].map(([, text]) => ({
      page,
      text: text ?? ''
    }))
  )
].flatMap(({ page, text }) =>
  [...text.matchAll(/(?<![\w/.-])(svcd?) +([a-z-][^|)`\n]*)/g)].map(([, program = '', rest = '']) => ({
    page,
    program,
    // what follows ` -- ` is a command of somebody else.
    words: (rest.split(' -- ')[0] ?? '').replace(/[[\]\\]/g, ' ').split(/\s+/)
  }))
)

/** Why a command line cannot be typed; undefined when it can. */
function complaint(words: readonly string[], program: ReturnType<typeof buildProgram>): string | undefined {
  let command: Pick<typeof program, 'commands' | 'options'> = program
  // options of every command may come first
  let rest = words.slice(
    Math.max(
      0,
      words.findIndex((word) => !word.startsWith('--'))
    )
  )
  for (;;) {
    const inner = command.commands.find((each) => [each.name(), ...each.aliases()].includes(rest[0] ?? ''))
    if (inner === undefined) break
    command = inner
    rest = rest.slice(1)
  }
  const [word = ''] = rest
  if (command.commands.length > 0 && /^[a-z]+$/.test(word) && word !== 'help') return `no command ${word}`
  const options = new Set([...command.options, ...program.options].map(({ long }) => long).concat('--help'))
  const unknown = words.find((each) => /^--[a-z]/.test(each) && !options.has(each.replace(/[=,;:.].*$/, '')))
  return unknown === undefined ? undefined : `no option ${unknown}`
}

test('every command and option of svc and svcd in the pages exists', () => {
  expect(commands.length).toBeGreaterThan(100)
  const terminal = { stdout: Output.stdout(), stderr: Output.stderr(), env: {}, cwd: root }
  const svc = buildProgram('0.0.0', terminal, new AbortController().signal, false)
  const wrong = commands.flatMap(({ page, program, words }) => {
    const [word = ''] = words
    const why =
      program === 'svc'
        ? complaint(words, svc)
        : (words.find((each) => /^--[a-z]/.test(each) && !HELP.includes(each)) ??
          (/^[a-z]+$/.test(word) && !HELP.includes(`svcd ${word} `) ? word : undefined))
    return why === undefined ? [] : [`${page}: ${program} ${words.join(' ')}: ${why}`]
  })
  expect(wrong).toEqual([])
})

test('the files that shell blocks of the checkout start exist', () => {
  const started = blocks
    .filter(({ language, isChecked }) => language === 'sh' && isChecked)
    .flatMap(({ code }) =>
      [...code.matchAll(/(?:^|\$PWD\/)((?:bin|scripts|packages|node_modules)\b[\w./-]*)/gm)].map(([, path]) => path!)
    )
  expect(started).toContain('bin')
  expect(started.filter((path) => !existsSync(join(root, path)))).toEqual([])
})

test('the pnpm scripts that the pages name exist', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  const own = new Set(['exec', 'install', 'audit', 'dlx', ...Object.keys(scripts)])
  const named = blocks
    .filter(({ language, isChecked }) => language === 'sh' && isChecked)
    .flatMap(({ page, code }) =>
      [...code.matchAll(/^(?:npx --yes pnpm@10|pnpm) ([a-z:]+)/gm)].map(([, name]) => ({ page, name: name ?? '' }))
    )
  expect(named.length).toBeGreaterThan(3)
  expect(named.filter(({ name }) => !own.has(name))).toEqual([])
})

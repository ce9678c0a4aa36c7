// Man pages from the programs' own descriptions: the commands of svc, the flags and keys of svcd.
import { Writable } from 'node:stream'
import { EXIT_HELP as SVC_EXITS } from '../../packages/cli/src/exit-codes.ts'
import { moreOf } from '../../packages/cli/src/help.ts'
import { buildProgram } from '../../packages/cli/src/program.ts'
import { CONFIG_KEYS } from '../../packages/daemon/src/config/keys.ts'
import { FLAG_HELP, EXIT_HELP as SVCD_EXITS, USAGE } from '../../packages/daemon/src/flags.ts'
import { Output } from '../../packages/internal/terminal/src/output.ts'

type Command = ReturnType<typeof buildProgram>

/**
 * Text of roff: backslashes and dashes as they are, and no line that a dot or a quote makes a request of. Pages are read
 * in the C locale, too, which has ASCII alone.
 */
const text = (words: string): string =>
  words
    .replaceAll('\\', '\\e')
    .replaceAll('…', '...')
    .replaceAll('’', "'")
    .replaceAll('-', '\\-')
    .replace(/^(['.])/gm, '\\&$1')
const bold = (words: string): string => `\\fB${text(words)}\\fR`
const item = (head: string, body: string): string[] => ['.TP', head, text(body === '' ? ' ' : `${body}`)]

/** Man pages have no date: they would differ from build to build. */
const title = (name: string, section: number, version: string, about: string): string[] => [
  `.TH ${name.toUpperCase()} ${section} "" "svc ${version}" "${about}"`,
  '.SH NAME',
  ''
]

const page = (lines: readonly string[]): string => `${lines.filter((line) => line !== '').join('\n')}\n`

/** `svc.1` */
export function svcPage(version: string): string {
  const nowhere = new Output(new Writable({ write: (_chunk, _encoding, done) => done() }))
  const terminal = { stdout: nowhere, stderr: nowhere, cwd: '/', env: {} }
  const program = buildProgram(version, terminal, new AbortController().signal, false)
  const shared = optionsOf(program)
  const sharedFlags = new Set(shared.map(([flags]) => flags))
  return page([
    ...title('svc', 1, version, 'User commands'),
    `svc \\- ${text('keep models in a local, verified store')}`,
    '.SH SYNOPSIS',
    `${bold('svc')} [\\fIoptions\\fR] \\fIcommand\\fR [\\fIarguments\\fR]`,
    '.SH DESCRIPTION',
    text(program.description()),
    '.PP',
    text(
      'REF is ns/name:quant in any case, ns/name when it has one quant here, ns/name:tag+quant or ns/name@sha256:<hex>, with or without svc:/// in front.'
    ),
    '.SH COMMANDS',
    ...commandsOf(program).flatMap(([command, words]) => [
      '.TP',
      `${bold(words)}${command.registeredArguments.map((argument) => ` \\fI${text(argumentText(argument))}\\fR`).join('')}`,
      text(command.description()),
      ...optionsOf(command)
        .filter(([flags]) => !sharedFlags.has(flags))
        .flatMap(([flags, about]) => ['.RS', ...item(bold(flags), about), '.RE']),
      ...moreLines(words)
    ]),
    '.SH OPTIONS',
    'Every command takes these, before or behind its name.',
    ...shared.flatMap(([flags, about]) => item(bold(flags), about)),
    '.SH EXIT STATUS',
    ...SVC_EXITS.flatMap(([code, about]) => item(bold(String(code)), about)),
    '.SH ENVIRONMENT',
    ...item(bold('SVC_SOCKET'), "the daemon's socket"),
    ...item(
      bold('XDG_RUNTIME_DIR'),
      'where the socket is without it: svc-<uid>/svc.sock in there, else in TMPDIR, else in /tmp'
    ),
    '.SH SEE ALSO',
    `${bold('svcd')}(8)`
  ])
}

/** What the command's own page says below its options. */
function moreLines(words: string): string[] {
  const { text: sentences, examples } = moreOf(words)
  return [
    ...(sentences === undefined ? [] : ['.RS', '.PP', text(sentences), '.RE']),
    ...examples.flatMap(([line, does]) => ['.RS', ...item(text(line), does), '.RE'])
  ]
}

function argumentText(argument: Command['registeredArguments'][number]): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${name}>` : `[${name}]`
}

/** The commands that can be run, with all their words, in the order of the help. */
function commandsOf(command: Command, before = ''): (readonly [Command, string])[] {
  const visible = command.createHelp().visibleCommands(command)
  return visible
    .filter((inner) => inner.name() !== 'help')
    .flatMap((inner) => {
      const words = `${before}${inner.name()}`
      return inner.commands.length > 0 ? commandsOf(inner, `${words} `) : [[inner, words] as const]
    })
}

const optionsOf = (command: Command): (readonly [string, string])[] =>
  command
    .createHelp()
    .visibleOptions(command)
    .map(({ flags, description, argChoices }) => [
      flags,
      argChoices === undefined ? description : `${description} (${argChoices.join(', ')})`
    ])

/** `svcd.8` */
export function svcdPage(version: string): string {
  return page([
    ...title('svcd', 8, version, 'System administration'),
    `svcd \\- ${text('the local model store daemon')}`,
    '.SH SYNOPSIS',
    ...USAGE.flatMap(([words]) => [bold(words), '.br']),
    '.SH DESCRIPTION',
    text(
      'svcd keeps models as blobs that are named by their SHA-256, and answers svc and other programs on a Unix socket.'
    ),
    ...USAGE.flatMap(([words, about]) => item(bold(words), about)),
    '.SH OPTIONS',
    ...FLAG_HELP.flatMap(([flags, about]) => item(bold(flags), about)),
    '.SH CONFIGURATION',
    text('The file is TOML. Flags win over the environment, the environment over the file. No file is needed.'),
    ...Object.entries(CONFIG_KEYS).flatMap(([section, keys]) => [
      `.SS [${section}]`,
      ...Object.entries(keys).flatMap(([key, { type, summary }]) => item(`${bold(key)} (${type})`, summary))
    ]),
    '.SH ENVIRONMENT',
    ...item(bold('SVC_ROOT'), 'the store'),
    ...item(bold('SVC_CONFIG'), 'the configuration file'),
    ...item(bold('SVC_SOCKET'), 'where to listen'),
    ...item(bold('SVC_HF_TOKEN'), 'token for gated repositories of the hub'),
    ...item(bold('HF_ENDPOINT'), 'base address of the hub'),
    ...item(bold('HTTPS_PROXY, HTTP_PROXY, NO_PROXY'), 'for requests to the hub and the catalog'),
    '.SH SIGNALS',
    ...item(bold('SIGTERM, SIGINT, SIGHUP'), 'stop in order; a second one stops at once'),
    '.SH EXIT STATUS',
    ...SVCD_EXITS.flatMap(([code, about]) => item(bold(String(code)), about)),
    '.SH SEE ALSO',
    `${bold('svc')}(1)`
  ])
}

import type { Argument, Command, Option } from 'commander'

/** The kinds of words that only the store or the file system can complete. */
export type WordKind = 'ref' | 'repo' | 'job' | 'file'

export interface Candidate {
  readonly value: string
  readonly about: string
}

/** What is possible at the cursor. */
export interface Completions {
  readonly candidates: readonly Candidate[]
  readonly sources: readonly WordKind[]
  /** The fixed start of the word, as in `--as=me/x`; candidates are appended to it. */
  readonly before: string
  /** The text that candidates must start with. */
  readonly typed: string
}

const NOTHING: Completions = { candidates: [], sources: [], before: '', typed: '' }

/**
 * Parses the words after `svc` like the command parser; the last one, which may be empty, is being typed. Candidates
 * are derived from the commands themselves: their names, options, choices, and the names of their arguments.
 */
export function completionsAt(program: Command, words: readonly string[]): Completions {
  const typed = words.at(-1) ?? ''
  const { command, args, optionsOver, pending } = contextAt(program, words.slice(0, -1))
  if (pending !== undefined) return optionValue(pending, '', typed)
  if (!optionsOver && typed.startsWith('-')) {
    const equals = typed.indexOf('=')
    if (equals < 0) return { ...NOTHING, typed, candidates: optionsOf(command) }
    const option = optionNamed(command, typed.slice(0, equals))
    return option === undefined ? NOTHING : optionValue(option, typed.slice(0, equals + 1), typed.slice(equals + 1))
  }
  if (args === 0 && command.commands.length > 0) return { ...NOTHING, typed, candidates: commandsOf(command) }
  if (command.parent === program && command.name() === 'help')
    return { ...NOTHING, typed, candidates: pagesAt(program, words) }
  const { registeredArguments } = command
  const last = registeredArguments.at(-1)
  const argument = registeredArguments[args] ?? (last?.variadic === true ? last : undefined)
  return argument === undefined ? NOTHING : argumentAt(argument, typed)
}

/** The command that the words lead to, the number of its arguments so far, and the option whose value comes next. */
function contextAt(program: Command, words: readonly string[]) {
  let command = program
  let args = 0
  let optionsOver = false
  let pending: Option | undefined
  for (const word of words) {
    if (pending !== undefined) pending = undefined
    else if (optionsOver) args++
    else if (word === '--') optionsOver = true
    else if (word.startsWith('-') && word !== '-') pending = takesNext(optionNamed(command, word), word)
    else {
      const inner = args === 0 ? command.commands.find((each) => namesOf(each).includes(word)) : undefined
      if (inner === undefined) args++
      else command = inner
    }
  }
  return { command, args, optionsOver, pending }
}

const namesOf = (command: Command): string[] => [command.name(), ...command.aliases()]

/** A command and its ancestors, whose options it inherits. */
const lineage = (command: Command): Command[] =>
  command.parent === null ? [command] : [command, ...lineage(command.parent)]

const optionNamed = (command: Command, word: string): Option | undefined =>
  lineage(command)
    .flatMap(({ options }) => options)
    .find(({ long, short }) => long === word || short === word)

const takesNext = (option: Option | undefined, word: string): Option | undefined =>
  option !== undefined && !word.includes('=') && option.required ? option : undefined

function optionsOf(command: Command): Candidate[] {
  const visible = command.createHelp().visibleOptions(command)
  return visible.map(({ long, short, description }) => ({ value: long ?? short ?? '', about: description }))
}

const commandsOf = (command: Command): Candidate[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .map((each) => ({ value: each.name(), about: each.summary() || each.description() }))

/** The commands that may follow `svc help …`. */
function pagesAt(program: Command, words: readonly string[]): Candidate[] {
  let page: Command | undefined = program
  for (const word of words.slice(words.indexOf('help') + 1, -1))
    page = page?.commands.find((each) => each.name() === word)
  return page === undefined ? [] : commandsOf(page)
}

function optionValue(option: Option, before: string, typed: string): Completions {
  const name = /[<[]([^>\]]+)[>\]]/.exec(option.flags)?.[1] ?? ''
  return { ...offered(name, option.argChoices), before, typed }
}

const argumentAt = (argument: Argument, typed: string): Completions => ({
  ...offered(argument.name(), argument.argChoices),
  typed
})

function offered(name: string, choices: readonly string[] | undefined): Completions {
  if (choices !== undefined) return { ...NOTHING, candidates: choices.map((value) => ({ value, about: '' })) }
  const plain = name.toLowerCase().replace(/\.\.\.$/, '')
  if (/^refs?$|^target$/.test(plain)) return { ...NOTHING, sources: ['ref'] }
  if (/^ns\/name(:tag)?$|^text$/.test(plain)) return { ...NOTHING, sources: ['repo'] }
  if (plain === 'id') return { ...NOTHING, sources: ['job'] }
  if (/^(paths?|files?|folder|dirs?|dest|src|source|program)$/.test(plain)) return { ...NOTHING, sources: ['file'] }
  return NOTHING
}

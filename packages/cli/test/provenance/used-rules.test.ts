// A rule has one home, and each use of it is needed: the list of mutations takes away every one in turn. Whoever asks the rule at a new
// place adds a mutation, and the test that finds it.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { MUTATIONS } from './mutations.ts'

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))

/** What says who may have what: the rule, what passes its verdict on, and what notes where bytes came from. */
const ASKED = [
  ...[
    'verdictOf',
    'heldBackReason',
    'withheldNotice',
    'isPrivate',
    'isRestricted',
    'isShown',
    '(?<!#access\\.)isForeign',
    'gaveItself'
  ],
  ...['withMark', 'mergedProvenance', 'sameStanding', 'usedKey', 'tookUnproven'],
  ...[
    'mayGive',
    '#mayGive',
    'orClosed',
    '#withholds',
    'shows',
    '#isShared',
    'isWithheld',
    'mayRead',
    '#served\\.(?:given|allShown)'
  ],
  ...['givenCompanions', 'ownCompanions', 'isForLoaders', 'isSecretByName', 'markedOwn'],
  ...['holdings\\.proven', 'inherited', 'unprovenOf', 'unprovenNow', 'isAlone'],
  // what documents of strangers say of bytes that are here
  ...['(?<!\\.)requireRoot', 'restoredRecord', 'restoredProvenance', 'records\\.of'],
  // whose signature a model needs
  ...['ruleFor', '#ruled', 'withSignature', '#doubts', 'trust\\.requireSigned', 'checkBrought', 'checkStored'],
  ...['complaintOfStored', 'signed\\.complaint', '#isSigned', 'signedOf', 'mayBeSigned', 'signed\\.covers']
]
const USE = new RegExp(`(?:^|[^\\w#])(?:${ASKED.join('|')})\\(`)
/** A line that says what one of them is, or whose it is. */
const DEFINITION =
  /^\s*(?:\/?\*|\/\/|(?:export )?(?:async )?function |(?:async )?#?\w+\([^)]*\)?.*(?:\{|: .*>)$|readonly \w+: )/

/** These ask, and give nothing. */
const GIVE_NOTHING = [
  // for collection
  'const given = givenCompanions(document, state!)?.digest',
  // what a signature should cover
  "return isListed && is === 'skip' && (OTHER_WEIGHTS.test(path) || !isForLoaders(path))"
]

const sourcesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && /\/src(?:\/|$)/.test(entry.parentPath))
    .filter(({ parentPath }) => !parentPath.includes('/node_modules/'))
    .map((entry) => join(entry.parentPath, entry.name))

/** The lines, from 0, that mutations of a file take something away from. */
function mutated(file: string, text: string): Set<number> {
  const lines = new Set<number>()
  for (const { find } of MUTATIONS.filter((each) => join(ROOT, each.file) === file)) {
    const first = text.slice(0, text.indexOf(find)).split('\n').length - 1
    for (const [i] of find.split('\n').entries()) lines.add(first + i)
  }
  return lines
}

test('a mutation removes each use of a provenance rule', () => {
  const unmutated: string[] = []
  let uses = 0
  for (const file of ['classify', 'cli', 'daemon', 'internal/state', 'library', 'mirror', 'oci', 'sharing'].flatMap(
    (name) => sourcesOf(join(ROOT, 'packages', name, 'src'))
  )) {
    const text = readFileSync(file, 'utf8')
    const lines = mutated(file, text)
    for (const [i, line] of text.split('\n').entries()) {
      if (!USE.test(line) || DEFINITION.test(line) || GIVE_NOTHING.includes(line.trim())) continue
      uses++
      if (!lines.has(i)) unmutated.push(`${file.slice(ROOT.length)}:${i + 1}: ${line.trim()}`)
    }
  }
  expect(unmutated).toEqual([])
  expect(uses).toBeGreaterThan(40)
})

test('each mutation names the one test that detects it', () => {
  for (const { what, caughtBy, dies } of MUTATIONS)
    expect([what, caughtBy === undefined]).toEqual([what, dies !== undefined])
})

test('each test that a mutation names is there', () => {
  for (const { what, caughtBy } of MUTATIONS) {
    if (caughtBy === undefined) continue
    const file = join(ROOT, caughtBy.file)
    expect([what, existsSync(file) && readFileSync(file, 'utf8').includes(caughtBy.name ?? '')]).toEqual([what, true])
  }
})

test('each mutation matches exactly one place', () => {
  for (const { what, file, find } of MUTATIONS)
    expect([what, readFileSync(join(ROOT, file), 'utf8').split(find).length - 1]).toEqual([what, 1])
})

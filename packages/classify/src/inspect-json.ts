import { ClassifyError } from './errors.ts'
import { templateFindings } from './inspect-template.ts'
import { type JsonEvents, JsonScanner } from './json-scan.ts'
import { baseOf, nameProblem } from './names.ts'

/** What a check of one key or value says; `runs` marks what would run code. */
export interface JsonFinding {
  readonly runs: boolean
  /** The key, with those above it. */
  readonly key?: string
  readonly what: string
}

/** A configuration is read up to this; the index of the largest models has 9 MB. */
export const MAX_JSON_BYTES = 16 * 1024 * 1024
const MAX_DEPTH = 64
const MAX_TEXT_BYTES = 1024 * 1024
const MAX_FINDINGS = 50
const MAX_SHOWN = 80
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u

/** Keys that make a loader import Python, wherever they stand. */
const CODE_KEYS: Readonly<Record<string, string>> = {
  auto_map: 'loads classes from Python files',
  custom_pipeline: 'loads a pipeline from Python files',
  custom_pipelines: 'loads pipelines from Python files',
  model_file: 'loads the model from a Python file',
  _attn_implementation_internal: 'loads the code of a kernel'
}
/** Entries of a tokenizer's configuration that name files which a loader opens. */
const FILE_KEYS: ReadonlySet<string> = new Set([
  'vocab_file',
  'merges_file',
  'tokenizer_file',
  'spm_file',
  'model_file'
])

/** Checks a configuration in pieces, as it arrives, and builds nothing of it (spec add.60). */
export class JsonInspection {
  readonly findings: JsonFinding[] = []
  readonly #scanner: JsonScanner
  #isBroken = false

  constructor(name: string) {
    this.#scanner = new JsonScanner(new KeyEvents(baseOf(name), this.findings), {
      maxDepth: MAX_DEPTH,
      maxTextBytes: MAX_TEXT_BYTES
    })
  }

  /** @returns false when there is no more to learn */
  push(chunk: Uint8Array): boolean {
    return this.#safely(() => this.#scanner.push(chunk)) && this.findings.length < MAX_FINDINGS
  }

  end(): void {
    this.#safely(() => this.#scanner.end())
  }

  #safely(work: () => void): boolean {
    if (this.#isBroken) return false
    try {
      work()
    } catch (error) {
      if (!(error instanceof ClassifyError)) throw error
      this.#isBroken = true
      this.findings.push({ runs: false, what: error.message })
    }
    return !this.#isBroken
  }
}

class KeyEvents implements JsonEvents {
  readonly #file: string
  readonly #findings: JsonFinding[]
  /** The keys above, without those of arrays. */
  readonly #above: (string | undefined)[] = []
  #key: string | undefined

  constructor(file: string, findings: JsonFinding[]) {
    this.#file = file
    this.#findings = findings
  }

  startObject(): void {
    this.#above.push(this.#key)
    this.#key = undefined
  }

  endObject(): void {
    this.#key = this.#above.pop()
  }

  startArray(): void {
    this.#above.push(undefined)
  }

  endArray(): void {
    this.#above.pop()
  }

  key(text: string | undefined): void {
    this.#key = text
    if (text === undefined) return this.#say(false, 'a key of more than 1 MiB')
    if (CONTROL.test(text)) this.#say(false, 'its name has control characters')
    const code = Object.hasOwn(CODE_KEYS, text) ? CODE_KEYS[text] : undefined
    if (code !== undefined) this.#say(true, code)
  }

  string(text: string | undefined): void {
    const key = this.#key ?? ''
    const isTemplate = /^chat_template/.test(key) || (key === 'template' && this.#above.includes('chat_template'))
    if (text === undefined) {
      if (isTemplate) this.#say(false, 'a template of more than 1 MiB')
      return
    }
    if (isTemplate) for (const what of templateFindings(text)) this.#say(true, `its template ${what}`)
    const isPath = this.#above.at(-1) === 'weight_map' || FILE_KEYS.has(key)
    if (isPath && leavesFolder(text)) this.#say(false, `names a file outside of the folder: ${short(text)}`)
    if (/^_?attn_implementation$/.test(key) && text.includes('/'))
      this.#say(true, `loads the code of a kernel: ${short(text)}`)
    if (this.#file === 'modules.json' && key === 'type' && !text.startsWith('sentence_transformers.'))
      this.#say(true, `loads the class ${short(text)}`)
  }

  number(): void {}

  literal(value: boolean | null): void {
    if (this.#key === 'trust_remote_code' && value === true) this.#say(true, 'asks for remote code')
  }

  #say(runs: boolean, what: string): void {
    if (this.#findings.length >= MAX_FINDINGS) return
    const keys = [...this.#above, this.#key].filter((key) => key !== undefined)
    this.#findings.push({ runs, ...(keys.length > 0 && { key: short(keys.slice(-3).join('.')) }), what })
  }
}

/** An absolute path, or one with `..`, also as Windows spells them. */
function leavesFolder(path: string): boolean {
  const problem = nameProblem(path)
  return problem === 'absolute' || problem === 'dot-segment' || problem === 'backslash' || /^[a-z]:/i.test(path)
}

function short(text: string): string {
  const quoted = JSON.stringify(text.slice(0, MAX_SHOWN))
  return quoted.slice(1, -1) + (text.length > MAX_SHOWN ? '…' : '')
}

import { type Readable, Transform, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { StringDecoder } from 'node:string_decoder'
import { jsonText, printable } from './printable.ts'
import { formatTable, wrapped } from './table.ts'

/** A stream, whether it is a terminal, and its width. */
export type OutputStream = Writable & { readonly isTTY?: boolean; readonly columns?: number }

/** Our own sequences, the only ones that reach a terminal: erase below the cursor, and let no line wrap meanwhile. */
const ERASE = '\r\u001b[J'
const up = (lines: number): string => (lines === 0 ? '' : `\u001b[${lines}A`)
const UNWRAPPED = '\u001b[?7l'
const WRAPPED = '\u001b[?7h'
const DEFAULT_COLUMNS = 80

/**
 * The only writer to standard output and standard error. Whatever is written may be a stranger's: no control character
 * in it reaches the stream, but for the line breaks of {@link Output.text}.
 */
export class Output {
  readonly #stream: OutputStream
  /** What {@link Output.draw} shows now. */
  #drawn: readonly string[] = []

  constructor(stream: OutputStream) {
    this.#stream = stream
  }

  static readonly stdout = (): Output => new Output(process.stdout)
  static readonly stderr = (): Output => new Output(process.stderr)

  get isTerminal(): boolean {
    return this.#stream.isTTY === true
  }

  /** The width of the terminal. */
  get columns(): number | undefined {
    return this.#stream.columns
  }

  /** For a line that wraps; a file has no end of a line. */
  get #room(): number {
    return this.isTerminal ? (this.columns ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY
  }

  /** For `stdio` of a program of ours, which writes through its own writer. */
  get forChild(): 'inherit' | 'pipe' {
    return this.#stream === process.stdout || this.#stream === process.stderr ? 'inherit' : 'pipe'
  }

  /** Called instead of an uncaught error when the reader is gone or the disk is full. */
  onError(listener: (error: NodeJS.ErrnoException) => void): void {
    this.#stream.on('error', listener)
  }

  /** One line: a line break in it is a control character like others. Above what is drawn. */
  line(text = ''): void {
    this.#above(`${printable(text)}\n`)
  }

  /** A line of prose: a terminal gets breaks between words, and no word is cut. */
  prose(text: string): void {
    for (const line of wrapped(printable(text), this.#room)) this.#above(`${line}\n`)
  }

  /** Rows of cells as aligned columns, which a terminal gets in its width, without a cut word. */
  table(rows: readonly (readonly string[])[]): void {
    const cells = rows.map((row) => row.map(printable))
    for (const line of formatTable(cells, this.#room)) this.#above(`${line.trimEnd()}\n`)
  }

  /** Text of several lines. For text of ours, and bytes that the owner asked for: strangers could imitate our lines. */
  text(text: string): void {
    this.#above(printableLines(text))
  }

  /** A question, whose answer is typed behind it. */
  question(text: string): void {
    this.#above(printable(text))
  }

  /** A line of cells with tabs between them, for programs. */
  fields(...cells: readonly string[]): void {
    this.#above(`${cells.map(printable).join('\t')}\n`)
  }

  /** A line of JSON. */
  document(value: unknown): void {
    this.#above(`${jsonText(value)}\n`)
  }

  /** An error that nobody expected, with its stack: Node would print its message as it is. */
  defect(program: string, error: unknown): void {
    const [what, ...stack] = ((error as Error | undefined)?.stack ?? String(error)).split('\n')
    this.line(`${program}: ${what}`)
    for (const line of stack) this.line(`    ${line.trim()}`)
  }

  /** Draws lines in place of those drawn before, cut to the width; none erases them. For terminals. */
  draw(lines: readonly string[]): void {
    const columns = this.columns ?? DEFAULT_COLUMNS
    const cut = lines.map((line) => Array.from(printable(line)).slice(0, columns).join(''))
    const erased = this.#erased()
    this.#drawn = cut
    this.#stream.write(erased + this.#drawing())
  }

  /** Bytes as they are into a file or a pipe; on a terminal as text. @throws as the source and the stream do */
  async bytes(source: Readable): Promise<void> {
    const end = { end: false } as const
    if (this.isTerminal) await pipeline(source, textOfBytes(), this.#stream, end)
    else await pipeline(source, this.#stream, end)
  }

  #above(text: string): void {
    this.#stream.write(this.#erased() + text + this.#drawing())
  }

  #erased(): string {
    return this.#drawn.length === 0 ? '' : up(this.#drawn.length - 1) + ERASE
  }

  #drawing(): string {
    return this.#drawn.length === 0 ? '' : UNWRAPPED + this.#drawn.join('\n') + WRAPPED
  }
}

const printableLines = (text: string): string => text.split('\n').map(printable).join('\n')

/** Of a text file the indentation stays, too. */
const printableFile = (text: string): string => text.replaceAll('\r\n', '\n').split('\t').map(printableLines).join('\t')

function textOfBytes(): Transform {
  const decoder = new StringDecoder('utf8')
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) => done(null, printableFile(decoder.write(chunk))),
    flush: (done) => done(null, printableFile(decoder.end()))
  })
}

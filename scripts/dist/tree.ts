// What is shipped: a list of files, apart from where they come from and what they are packed into.
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** A file or a symbolic link. Folders follow from the paths. */
export type Entry =
  | { readonly path: string; readonly content: Buffer; readonly executable: boolean }
  | { readonly path: string; readonly link: string }

/** Relative paths, in the order of their bytes, each once. */
export class FileTree {
  readonly #entries = new Map<string, Entry>()

  /** @throws Error for a path that is taken, absolute, or leads out of the tree */
  add(path: string, content: Buffer | string, executable = false): void {
    this.#put({ path, content: Buffer.from(content), executable })
  }

  link(path: string, target: string): void {
    this.#put({ path, link: target })
  }

  /** Every file below a folder of this machine; `takes` decides by the path within it. */
  addFolder(path: string, folder: string, takes: (relative: string) => boolean): void {
    for (const relative of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      const file = join(folder, relative)
      const stat = lstatSync(file)
      if (!stat.isFile() || !takes(relative)) continue
      this.add(`${path}/${relative}`, readFileSync(file), (stat.mode & 0o100) !== 0)
    }
  }

  /** The same files below another folder. */
  below(folder: string): FileTree {
    const moved = new FileTree()
    for (const entry of this.entries()) moved.#put({ ...entry, path: `${folder}/${entry.path}` })
    return moved
  }

  entries(): Entry[] {
    return [...this.#entries.values()].sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)))
  }

  get(path: string): Entry | undefined {
    return this.#entries.get(path)
  }

  /** Bytes of all files. */
  get sizeBytes(): number {
    return this.entries().reduce((sum, entry) => sum + ('content' in entry ? entry.content.length : 0), 0)
  }

  /** Lays the tree out in an absent or empty folder. */
  writeTo(folder: string): void {
    for (const entry of this.entries()) {
      const file = join(folder, entry.path)
      mkdirSync(dirname(file), { recursive: true, mode: 0o755 })
      if ('link' in entry) symlinkSync(entry.link, file)
      else {
        writeFileSync(file, entry.content, { flag: 'wx' })
        chmodSync(file, entry.executable ? 0o755 : 0o644)
      }
    }
  }

  #put(entry: Entry): void {
    const { path } = entry
    if (path.split('/').some((part) => part === '' || part === '.' || part === '..'))
      throw new Error(`${path} is no path within a tree`)
    if (this.#entries.has(path)) throw new Error(`${path} is there already`)
    this.#entries.set(path, entry)
  }
}

const utf8 = new TextEncoder()

class Writer {
  readonly #parts: Uint8Array[] = []

  u32(value: number): this {
    return this.#number(4, (view) => view.setUint32(0, value, true))
  }

  u64(value: number): this {
    return this.#number(8, (view) => view.setBigUint64(0, BigInt(value), true))
  }

  text(value: string): this {
    const bytes = utf8.encode(value)
    this.u64(bytes.length)
    this.#parts.push(bytes)
    return this
  }

  bytes(): Uint8Array {
    return new Uint8Array(Buffer.concat(this.#parts))
  }

  #number(length: number, set: (view: DataView) => void): this {
    const bytes = new Uint8Array(length)
    set(new DataView(bytes.buffer))
    this.#parts.push(bytes)
    return this
  }
}

/**
 * A GGUF of version 3 without its weights' bytes.
 * @param tensors type (`ggml_type`) and number of elements of each
 * @param words the vocabulary, behind `keys` and before `late`, as quantizers write it
 */
export function ggufBytes(
  keys: Readonly<Record<string, string | number>>,
  tensors: readonly (readonly [type: number, elements: number])[],
  words: readonly string[] = [],
  late: Readonly<Record<string, string | number>> = {}
): Uint8Array {
  const all = [
    ...Object.entries(keys),
    ...(words.length > 0 ? [['tokens', words] as const] : []),
    ...Object.entries(late)
  ]
  const writer = new Writer().u32(0x46554747).u32(3).u64(tensors.length).u64(all.length)
  for (const [key, value] of all) {
    const name = key === 'tokens' ? 'tokenizer.ggml.tokens' : key
    writer.text(name)
    if (typeof value === 'number') writer.u32(4).u32(value)
    else if (typeof value === 'string') writer.u32(8).text(value)
    else {
      writer.u32(9).u32(8).u64(value.length)
      for (const word of value) writer.text(word)
    }
  }
  tensors.forEach(([type, elements], i) => writer.text(`blk.${i}.weight`).u32(1).u64(elements).u32(type).u64(0))
  return writer.bytes()
}

export const LOOK_BYTES = 512

const MAGICS: readonly (readonly [string, string])[] = [
  ['GGUF', 'a GGUF file'],
  ['ggjt', 'a GGML file from before GGUF'],
  ['lmgg', 'a GGML file from before GGUF'],
  ['PK\x03\x04', 'a ZIP archive (PyTorch saves such)'],
  ['\x1f\x8b', 'a gzip archive'],
  ['\x28\xb5\x2f\xfd', 'a Zstandard archive'],
  ['7z\xbc\xaf\x27\x1c', 'a 7-Zip archive'],
  ['\x89HDF\r\n', 'an HDF5 file'],
  ['\x80\x02', 'a Python pickle'],
  ['\x80\x04', 'a Python pickle'],
  ['%PDF-', 'a PDF document'],
  ['version https://git-lfs.github.com/spec/', 'a Git LFS pointer: the real file was not downloaded'],
  ['version https://hawser.github.com/spec/', 'a Git LFS pointer: the real file was not downloaded']
]

/**
 * Describes, for people, what a file appears to be when it is not what its name says; undefined if unknown. `head` is
 * the start of its bytes.
 */
export function looksLike(head: Uint8Array, sizeBytes: number): string | undefined {
  if (sizeBytes === 0) return 'an empty file'
  const bytes = head.subarray(0, LOOK_BYTES)
  const text = String.fromCharCode(...bytes)
  const magic = MAGICS.find(([start]) => text.startsWith(start))
  if (magic) return magic[1]
  if (bytes.length > 0 && bytes.every((byte) => byte === 0)) return 'zero bytes, as an interrupted download leaves them'
  if (/^[\x80-\xff]*\s*<(?:!doctype html|html|head|body)\b/i.test(text)) return 'an HTML page'
  if (/^[\x80-\xff]*\s*<(?:\?xml|error)\b/i.test(text)) return 'an XML document, as stores answer errors with'
  if (/^.{8}\{\s*"/s.test(text)) return 'a safetensors file'
  if (/^[\x80-\xff]*\s*(?:\{\s*["}]|\[)/.test(text)) return 'a JSON text'
  if (/^[\t\n\r\x20-\x7e]+$/.test(text)) return `a text: ${JSON.stringify(text.slice(0, 40))}`
  return undefined
}

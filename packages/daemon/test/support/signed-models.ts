import { createHash, generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { signModel } from '@svc/signature'
import { type Files, safetensors } from './models.ts'

/** A signer whose public key is in a file. */
export interface Signer {
  readonly keyFile: string
  /** The files with `model.sig`, which signs all of them. */
  sign(files: Files, ignored?: readonly string[]): Files
}

export function signerIn(folder: string, name = 'signer'): Signer {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keyFile = join(folder, `${name}.pub`)
  writeFileSync(keyFile, publicKey.export({ type: 'spki', format: 'pem' }))
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const sign = (files: Files, ignored: readonly string[] = ['.gitattributes', 'model.sig']): Files => {
    const listed = Object.entries(files).map(([path, bytes]) => ({
      path,
      sha256: createHash('sha256').update(bytes).digest('hex')
    }))
    return { ...files, 'model.sig': Buffer.from(signModel({ name: 'model', files: listed, ignored }, { key })) }
  }
  return { keyFile, sign }
}

/** A model whose folder has a file of each kind: weights, in an archive, read on the side, and beside the artifact. */
export const FOLDER: Files = {
  'model.safetensors': safetensors(4_000, 51),
  'config.json': '{"model_type":"bert"}',
  'tokenizer.json': '{"version":"1.0"}',
  'modeling_tiny.py': 'pass\n',
  'generation_config.json': '{"temperature":0.6}',
  LICENSE: 'do what you like, but say so\n'
}

export interface Spoilt {
  /** What the refusal names. */
  readonly names: string
  readonly files: Files
}

const flipped =
  (names: string) =>
  ({ sign }: Signer): Spoilt => {
    const files = sign(FOLDER)
    const bytes = Buffer.from(files[names]!)
    bytes[bytes.length - 2]! ^= 1
    return { names, files: { ...files, [names]: bytes } }
  }

const without =
  (names: string) =>
  ({ sign }: Signer): Spoilt => {
    const { [names]: _, ...files } = sign(FOLDER)
    return { names, files }
  }

/** What `require` refuses, by what was done to a signed model. */
export const SPOILT: Readonly<Record<string, (signer: Signer) => Spoilt>> = {
  'a flipped byte in the weights': flipped('model.safetensors'),
  'a flipped byte in the tokenizer': flipped('tokenizer.json'),
  'a flipped byte beside the model': flipped('generation_config.json'),
  'a flipped byte in code': flipped('modeling_tiny.py'),
  'a missing file': without('generation_config.json'),
  'a missing config': without('config.json'),
  'a file that was added': ({ sign }) => ({
    names: 'tokenization_tiny.py',
    files: { ...sign(FOLDER), 'tokenization_tiny.py': 'import os\n' }
  }),
  'no signature': () => ({ names: 'model.sig', files: FOLDER }),
  'a signature that is none': () => ({ names: 'model.sig', files: { ...FOLDER, 'model.sig': '{}' } }),
  'a file that loaders read, made too large to be kept': ({ sign }) => ({
    names: 'generation_config.json',
    files: { ...sign(FOLDER), 'generation_config.json': Buffer.alloc((1 << 20) + 1, 0x20) }
  })
}

import { createHash } from 'node:crypto'
import { tarPadding } from '@svc/internal-tar'
import { digestFromBytes } from '@svc/ref'
import { type BlobContent, type CopyOptions, readContent } from './content.ts'
import { sealOci } from './document.ts'
import { OciError } from './errors.ts'
import { IMAGE_CONFIG_TYPE, IMAGE_LAYER_TYPE, TITLE_ANNOTATION } from './media-types.ts'
import { contentOfFile, inLayerOrder, type PackedImage, type PackedLayer, type PackInput, packedImage } from './pack.ts'
import { TAR_END, tarHeader } from './tar-header.ts'

const IMAGE_FOLDER = 'models'

/** An image has to declare one; its content is data and the same for all. */
const PLATFORM = { architecture: 'amd64', os: 'linux' }

/**
 * Packs a model as an ordinary image, for runtimes that mount images but not artifacts: one tar layer per file, with
 * the file at `models/<name>`. A tar's digest differs from its file's, so all bytes are read once to hash them.
 * @throws OciError `E_UNSUPPORTED`, `E_DIGEST_MISMATCH`; errors of the file system as they are
 */
export async function packImage(input: PackInput, options: CopyOptions = {}): Promise<PackedImage> {
  const layers: PackedLayer[] = []
  for (const file of inLayerOrder(input.files)) layers.push(await tarLayer(file.name, contentOfFile(file), options))
  const config = sealOci(IMAGE_CONFIG_TYPE, {
    ...PLATFORM,
    config: {},
    rootfs: { type: 'layers', diff_ids: layers.map(({ descriptor }) => descriptor.digest) }
  })
  return packedImage(input, config, layers)
}

/**
 * A layer with one file. The file's own digest is checked on the way: a tar of damaged bytes would carry a valid digest
 * for ever.
 */
async function tarLayer(name: string, file: BlobContent, { signal, onBytes }: CopyOptions): Promise<PackedLayer> {
  const head = tarHeader(`${IMAGE_FOLDER}/${name}`, file.sizeBytes)
  const tail = Buffer.concat([Buffer.alloc(tarPadding(file.sizeBytes)), TAR_END])
  const layerHash = createHash('sha256').update(head)
  const fileHash = createHash('sha256')
  for await (const chunk of readContent(file)) {
    signal?.throwIfAborted()
    layerHash.update(chunk)
    fileHash.update(chunk)
    onBytes?.(chunk.length)
  }
  const { digest: expected } = file
  if (digestFromBytes(fileHash.digest()) !== expected)
    throw new OciError('E_DIGEST_MISMATCH', `${name} does not match its digest ${expected}`, { digest: expected })
  const content = {
    digest: digestFromBytes(layerHash.update(tail).digest()),
    sizeBytes: head.length + file.sizeBytes + tail.length,
    segments: [head, ...file.segments, tail]
  }
  const { digest, sizeBytes: size } = content
  return {
    descriptor: { mediaType: IMAGE_LAYER_TYPE, digest, size, annotations: { [TITLE_ANNOTATION]: name } },
    content
  }
}

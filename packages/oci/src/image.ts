import { createHash } from 'node:crypto'
import { tarPadding } from '@svc/internal-tar'
import { digestFromBytes, type Sha256Digest } from '@svc/ref'
import { type ContentSegment, type CopyOptions, readContent } from './content.ts'
import { descriptorOf, digestOf, sealOci } from './document.ts'
import { OciError } from './errors.ts'
import { IMAGE_CONFIG_TYPE, IMAGE_LAYER_TYPE, MANIFEST_TYPE, TITLE_ANNOTATION } from './media-types.ts'
import {
  inLayerOrder,
  licences,
  manifestAnnotations,
  type PackedImage,
  type PackedLayer,
  type PackInput
} from './pack.ts'
import { TAR_END, tarHeader } from './tar-header.ts'

/** The folder of the files within the image. */
const IMAGE_FOLDER = 'models'

/** An image has to declare one; its content is data and the same for all. */
const PLATFORM = { architecture: 'amd64', os: 'linux' }

/**
 * Packs a model as an ordinary image, for runtimes that mount images but not artifacts: one tar layer per file, with
 * the file at `models/<name>`. A tar's digest differs from its file's, so all bytes are read once to hash them.
 * @throws OciError `E_UNSUPPORTED`, `E_DIGEST_MISMATCH`; errors of the file system as they are
 */
export async function packImage(input: PackInput, options: CopyOptions = {}): Promise<PackedImage> {
  if (input.files.length === 0) throw new OciError('E_UNSUPPORTED', 'a model without files cannot be packed')
  const layers: PackedLayer[] = []
  for (const { name, sizeBytes, path, digest } of inLayerOrder(input.files)) {
    layers.push(await tarLayer(name, { path, sizeBytes }, sizeBytes, digest, options))
  }
  for (const { name, bytes } of licences(input)) {
    layers.push(await tarLayer(name, bytes, bytes.length, digestOf(bytes), options))
  }
  const config = sealOci(IMAGE_CONFIG_TYPE, {
    ...PLATFORM,
    config: {},
    rootfs: { type: 'layers', diff_ids: layers.map(({ descriptor }) => descriptor.digest) }
  })
  const manifest = sealOci(MANIFEST_TYPE, {
    schemaVersion: 2,
    mediaType: MANIFEST_TYPE,
    config: descriptorOf(config),
    layers: layers.map(({ descriptor }) => descriptor),
    annotations: manifestAnnotations(input)
  })
  return { manifest, config, layers, ref: input.ref, isWithheld: input.isWithheld }
}

/**
 * A layer with one file. The file's own digest is checked on the way: a tar of damaged bytes would carry a valid digest
 * for ever.
 */
async function tarLayer(
  name: string,
  file: ContentSegment,
  fileBytes: number,
  fileDigest: Sha256Digest,
  { signal, onBytes }: CopyOptions
): Promise<PackedLayer> {
  const head = tarHeader(`${IMAGE_FOLDER}/${name}`, fileBytes)
  const tail = Buffer.concat([Buffer.alloc(tarPadding(fileBytes)), TAR_END])
  const layerHash = createHash('sha256').update(head)
  const fileHash = createHash('sha256')
  for await (const chunk of readContent({ digest: fileDigest, sizeBytes: fileBytes, segments: [file] })) {
    signal?.throwIfAborted()
    layerHash.update(chunk)
    fileHash.update(chunk)
    onBytes?.(chunk.length)
  }
  if (digestFromBytes(fileHash.digest()) !== fileDigest) {
    throw new OciError('E_DIGEST_MISMATCH', `${name} does not match its digest ${fileDigest}`, {
      digest: fileDigest
    })
  }
  const content = {
    digest: digestFromBytes(layerHash.update(tail).digest()),
    sizeBytes: head.length + fileBytes + tail.length,
    segments: [head, file, tail]
  }
  const { digest, sizeBytes: size } = content
  return {
    descriptor: { mediaType: IMAGE_LAYER_TYPE, digest, size, annotations: { [TITLE_ANNOTATION]: name } },
    content
  }
}

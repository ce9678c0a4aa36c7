import type { StandingViewBody } from '@svc/client/protocol'
import { type Library, LibraryError, type OllamaModel, type StandingFolder, StandingViews } from '@svc/library/parts'
import type { StandingModel } from '@svc/view'
import type { DaemonConfig } from './config/config.ts'
import { writeView } from './config/edit.ts'
import { standingView, type ViewsTable } from './config/standing.ts'
import { ConfigError } from './errors.ts'

/** The folders of the configuration, to which additions are saved, if it is a file. */
export const standingFolders = (
  library: Pick<Library, 'store' | 'clock' | 'log' | 'repos' | 'documents' | 'artifacts' | 'views'>,
  { file, views: folders }: Pick<DaemonConfig, 'file' | 'views'>
): StandingViews =>
  new StandingViews({ ...library, folders, ollamaForm, save: file === undefined ? undefined : savedTo(file) })

/** A folder of a request. @throws LibraryError `E_INVALID` */
export function folderOf(body: StandingViewBody): StandingFolder {
  try {
    return standingView(body, 'the standing view')
  } catch (error) {
    throw invalid(error)
  }
}

const savedTo =
  (file: string) =>
  (path: string, folder: StandingFolder | undefined): Promise<void> =>
    writeView(file, path, folder && tableOf(folder)).catch((error: unknown) => {
      throw invalid(error)
    })

const tableOf = ({ layout, path, match, copy, reload }: StandingFolder): ViewsTable => ({
  layout,
  path,
  ...(match.length > 0 && { match }),
  ...(copy !== undefined && { copy }),
  ...(reload !== undefined && { reload })
})

/** An error of the configuration is one of the request. */
const invalid = (error: unknown): unknown =>
  error instanceof ConfigError ? new LibraryError('E_INVALID', error.message, { cause: error }) : error

async function ollamaForm(model: OllamaModel): Promise<StandingModel['ollama']> {
  const { packOllama } = await import('@svc/oci')
  const packed = packOllama(model)
  if (packed === undefined) return undefined
  const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')
  return {
    manifest: text(packed.manifest.bytes),
    config: text(packed.config.bytes),
    configDigest: packed.config.digest,
    layers: packed.layers.map(({ descriptor }) => descriptor.digest)
  }
}

import type { View as ViewAnswer } from '@svc/client/protocol'
import type { View } from '@svc/view'
import { ViewError } from '@svc/view/view-error'

/** The API's fields for a view: its files, and the one for a runtime to load if that is unambiguous. */
export async function answerOf(view: View): Promise<Pick<ViewAnswer, 'folder' | 'loads' | 'files'>> {
  const { runtimePath } = await import('@svc/view')
  const { folder } = view
  const files = view.files.map(({ name, path, sizeBytes, kind, role, variant, part, digest }) => ({
    name,
    path,
    size: sizeBytes,
    kind,
    ...(role !== undefined && { role }),
    ...(variant !== undefined && { variant }),
    ...(part !== undefined && { part }),
    ...(digest !== undefined && { digest })
  }))
  try {
    return { folder, loads: runtimePath(view).path, files }
  } catch (error) {
    if (!(error instanceof ViewError)) throw error
    return { folder, files }
  }
}

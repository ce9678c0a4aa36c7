/** The error of this package alone, for programs that load the rest when they make their first view. */
export { ViewError, type ViewErrorCode, type ViewErrorDetails } from './errors.ts'

/** The text of the worker, put in by the build. */
declare module "worker-code" {
  const code: string;
  export default code;
}

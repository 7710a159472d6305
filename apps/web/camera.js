// A camera that is on between open() and take() or close(), and at no other time.

const REASONS = {
  NotAllowedError: "The camera was not allowed. Allow it for this page",
  NotFoundError: "There is no camera. Connect one",
  NotReadableError: "The camera is in use elsewhere. Close what uses it",
};

export async function cameraAvailable() {
  const devices = await navigator.mediaDevices?.enumerateDevices().catch(() => []);
  return Boolean(devices?.some((device) => device.kind === "videoinput"));
}

export class Camera {
  #opening = null; // the promise of a stream that is still wanted
  #stream = null;

  constructor(video) {
    this.video = video;
  }

  get on() {
    return Boolean(this.#stream);
  }

  // Whether the picture is there; false where close() came first.
  async open() {
    const opening = navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
    this.#opening = opening;
    const stream = await opening.catch((error) => {
      const reason = REASONS[error.name] ?? `The camera cannot be used (${error.message}). Check it`;
      throw new Error(`${reason}, or choose a file.`);
    });
    if (this.#opening !== opening) {
      stop(stream);
      return false;
    }
    this.#stream = stream;
    this.video.srcObject = stream;
    await this.video.play();
    return true;
  }

  // What the camera shows now, as a PNG; then it is closed.
  async take() {
    const { videoWidth, videoHeight } = this.video;
    const canvas = new OffscreenCanvas(videoWidth, videoHeight);
    canvas.getContext("2d").drawImage(this.video, 0, 0);
    this.close();
    const blob = await canvas.convertToBlob({ type: "image/png" });
    return new File([blob], "camera.png", { type: blob.type });
  }

  close() {
    this.#opening = null;
    stop(this.#stream);
    this.#stream = null;
    this.video.srcObject = null;
  }
}

function stop(stream) {
  stream?.getTracks().forEach((track) => track.stop());
}
